"""``spark-submit .../rewindmq/pipeline/jobs/index.py STORE OUT``"""

from rewindmq.pipeline.jobs.submitted import run_submitted

if __name__ == "__main__":
    raise SystemExit(run_submitted("index"))
