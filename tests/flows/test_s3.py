"""Artifacts in an S3-like store, by environment alone: a real server of its protocol on loopback (moto's)."""

import shutil
import subprocess
import sys

import boto3
import pytest
import yaml
from botocore.exceptions import EndpointConnectionError

from tests.conftest import own_environment
from tests.flows.test_kill import COMMAND, CONFIG
from tests.flows.test_schedule import QUIET, free_port

ACCESS = {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def bucket():
    """A bucket named ``team``, and the address of its server."""
    address = f"http://127.0.0.1:{free_port()}"
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", address.split(":")[-1]], **QUIET)
    try:
        store = boto3.resource(
            "s3", endpoint_url=address, aws_access_key_id="team", aws_secret_access_key="secret", region_name="us-east-1"
        )
        for attempt in range(20):
            try:
                made = store.create_bucket(Bucket="team")
                break
            except EndpointConnectionError:
                assert attempt < 19
        yield made, address
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.long
def test_models_and_reports_go_to_the_bucket_and_are_found_there(bucket, tmp_path):
    """`test_pipeline.test_stores_are_named_by_the_environment_alone` stays in the normal suite, with a folder in place of the bucket."""
    objects, address = bucket
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**CONFIG, "champion": {"name": "search"}}))
    environment = own_environment() | ACCESS | {"LAMBDAFLOW_ARTIFACTS": "s3://team/ranking", "MLFLOW_S3_ENDPOINT_URL": address}

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    done = run(*COMMAND)
    assert done.returncode == 0, done.stderr
    names = [found.key for found in objects.objects.filter(Prefix="ranking/")]
    assert any(name.endswith("/artifacts/report.html") for name in names)
    assert sum(name.endswith("/model.npz") for name in names) == 4
    assert not list((tmp_path / "mlruns").glob("**/report.html"))
    shutil.rmtree(tmp_path / ".lambdaflow" / "cells")
    (tmp_path / "new.txt").write_text("".join(f"0 qid:1 {' '.join(f'{f + 1}:{k * f}' for f in range(12))}\n" for k in range(5)))
    scored = run(*COMMAND[:3], "predict", "--model", "models:/search@champion", "--data", "new.txt", "-o", "scores.csv")
    assert scored.returncode == 0, scored.stderr
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 6
