"""The end of a job, as it looks to a batch."""


class JobStopping(Exception):
    """Raised in a batch that came when the job was already ending: Spark will run it again."""
