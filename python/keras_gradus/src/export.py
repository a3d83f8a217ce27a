"""Model.export to TensorFlow's SavedModel, which this backend cannot write."""


class GradusExportArchive:
    """Refuses: keras.Model.save writes files for every backend."""

    def track(self, resource):
        raise NotImplementedError("`export_saved_model` only currently supports the tensorflow, jax and torch backends. With "
                                  "gradus, model.save('model.keras') writes a file that each of them loads and exports")

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        self.track(fn)

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        self.track(resource)
