"""gradus.profile: a report of the time of some work."""
from . import _native

ProfileReport, ProfileScope = _native.ProfileReport, _native.ProfileScope


class profile:
    """A profile of this thread, and of the threads that work for it: a `with` statement, or a call with a function.

        with gradus.profile() as taken:
            train()
        print(taken.report)              # kernels, layers, stages of data sets, suggestions
        taken.report.save_trace("trace.json")

        report = gradus.profile(train)
    """

    def __new__(cls, work=None):
        made = super().__new__(cls)
        if work is None:
            return made
        with made:
            work()
        return made.report

    def __init__(self, work=None):
        self.report, self._session = None, None

    def start(self):
        """Begins the profile. InvalidArgumentError within another profile of this thread, and while a function is traced."""
        self._session = _native._ProfileSession()
        return self

    def stop(self):
        """Ends the profile, and returns the report. InvalidArgumentError if it has not begun."""
        if self._session is None:
            raise _native.InvalidArgumentError("profile: it has not begun")
        self.report, self._session = self._session.finish(), None
        return self.report

    __enter__ = start

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.stop()
        else:
            self._session = None  # without a report
