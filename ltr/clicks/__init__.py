"""Click models: what users examine and what attracts them, from the pages that they were shown."""
