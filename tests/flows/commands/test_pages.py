"""Commands that stay until they are stopped: what they hand to the servers, and what they refuse before."""

from flows.cli import main


def test_the_ports_that_are_asked_for_are_taken(workplace, monkeypatch):
    monkeypatch.setattr("flows.servers.serve_pages", lambda *ports: sum(ports))
    assert main(["ui"]) == 5000 + 4200
    assert main(["ui", "--mlflow-port", "1", "--prefect-port", "2"]) == 3


def test_a_schedule_needs_a_configuration(workplace, monkeypatch, capsys):
    told = []
    monkeypatch.setattr("flows.schedule.serve_schedule", lambda *given: told.append(given) or 0)
    assert main(["serve", "none.yaml", "--cron", "0 3 * * *"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: none.yaml: no such file or directory"
    (workplace / "c.yaml").write_text("data: {files: a.txt}\n")
    assert main(["serve", "c.yaml", "--cron", "0 3 * * *", "--allow", "x", "--set", "seed=7"]) == 0
    ((config, *rest),) = told
    assert (config.seed, rest) == (7, ["0 3 * * *", 4200, ["x"]])
