"""``spark-submit .../rewindmq/pipeline/jobs/replay_plan.py STORE ... --group G --topic T --to TARGET``"""

from rewindmq.pipeline.jobs.submitted import run_submitted

if __name__ == "__main__":
    raise SystemExit(run_submitted("replay-plan"))
