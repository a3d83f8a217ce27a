"""Model.export to TensorFlow's SavedModel, which this backend cannot write."""


class GradusExportArchive:
    """Refuses: keras.Model.save writes files for every backend."""

    def track(self, resource):
        raise NotImplementedError("export: this backend writes no SavedModel: model.save('model.keras') is read by every "
                                  "backend")

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        self.track(fn)
