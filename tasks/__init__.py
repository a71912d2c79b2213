"""Steps of the pipeline: one Prefect task around one call of the core, plus its files, tables and tracking."""
