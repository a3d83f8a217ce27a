"""A released Keras lists its backends in some of its modules. This finder compiles those modules with one more branch.

Keras's files are not changed. A branch `== "numpy"` gets a twin for this backend, whose imports lead to keras_gradus.src;
tuples that list all backends get its name. A Keras without these places is refused, unless it loads backends from
packages by itself.

Where no TensorFlow is installed, and in programs of gradus.run, what Keras does by TensorFlow for every backend, on the
host, is done by gradus.tensorflow (host_names.py): the modules of HOST are told so once they are loaded.
"""
import os
import sys

NAME = "gradus"
# Modules of Keras that list the backends, and how many places there are at least, in Keras 3.10 to 3.15.
PLACES = {"keras.src.backend": 1, "keras.src.models.model": 1, "keras.src.layers.layer": 1, "keras.src.export.saved_model": 1,
          "keras.src.utils.backend_utils": 2}
# Modules of Keras that work on the host by TensorFlow, and what changes them.
HOST = {"keras.src.utils.module_utils": lambda module, names: names.use_for(module.tensorflow),
        "keras.src.utils.dataset_utils": lambda module, names: names.know_datasets(module),
        "keras.src.callbacks.tensorboard": lambda module, names: names.write_summaries(module)}
THEIRS, OURS = "keras.src.backend.tensorflow", "keras_gradus.src"  # the backend that layers on the host ask by its name
MODEL = "numpy"  # the backend whose branches are twinned
OTHERS = {"tensorflow", "jax", "torch", MODEL}


def chosen():
    """The backend that Keras will choose: KERAS_BACKEND, else that of keras.json."""
    if os.environ.get("KERAS_BACKEND"):
        return os.environ["KERAS_BACKEND"]
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        import json
        with open(os.path.join(home, "keras.json")) as file:
            return json.load(file).get("backend")
    except (OSError, ValueError, AttributeError):
        return None


def twin_name(name):
    """The name in the branch of this backend for one in the branch of the model: modules, classes and texts."""
    for theirs, ours in ((f"keras.src.backend.{MODEL}.core", "keras_gradus.src"),
                         (f"keras.src.backend.{MODEL}", "keras_gradus.src"),
                         (MODEL, NAME), (MODEL.capitalize(), NAME.capitalize())):
        name = name.replace(theirs, ours)
    return name


def with_branches(source, path):
    """(the syntax tree of a module with the branches of this backend, the number of places where it is listed)"""
    import ast

    class Twin(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.copy_location(ast.Constant(twin_name(node.value)), node) if isinstance(node.value, str) else node

        def visit_Assign(self, node):
            """The model has no distribution_lib; this backend has one among what it exports."""
            return None if ast.unparse(node) == "distribution_lib = None" else self.generic_visit(node)

        def visit_ImportFrom(self, node):
            node.module = twin_name(node.module)
            for alias in node.names:
                alias.name = twin_name(alias.name)
            return node

    def chooses_model(node):
        """True for a branch that imports the model, or that answers for it: no other branch is for us."""
        test = ast.unparse(node.test)
        answers = test == f"self._backend == '{MODEL}'"
        imports = any(isinstance(each, ast.ImportFrom) and f"{each.module}.".startswith(f"keras.src.backend.{MODEL}.")
                      for each in node.body)
        return answers or (imports and test.endswith(f" == '{MODEL}'"))

    class Branches(ast.NodeTransformer):
        count = 0

        def visit_If(self, node):
            self.generic_visit(node)
            test = node.test
            if chooses_model(node):
                alone = ast.If(test=test, body=node.body, orelse=[])
                twin = Twin().visit(ast.parse(ast.unparse(ast.fix_missing_locations(alone))).body[0])
                twin.orelse = node.orelse
                for each in ast.walk(twin.test), *(ast.walk(statement) for statement in twin.body):
                    for inner in each:
                        ast.copy_location(inner, node)
                node.orelse = [ast.copy_location(twin, node)]
                self.count += 1
            return node

        def visit_Tuple(self, node):
            self.generic_visit(node)
            names = {part.value for part in node.elts if isinstance(part, ast.Constant)}
            if OTHERS <= names:
                node.elts.append(ast.copy_location(ast.Constant(NAME), node))
                self.count += 1
            return node

    branches = Branches()
    tree = branches.visit(ast.parse(source, path))
    return ast.fix_missing_locations(tree), branches.count


def loads_packages(source):
    """True for the text of a keras.src.backend that imports the package keras_<name> of a backend."""
    return "import_module" in source and "keras_" in source


def refuse(module, count):
    import importlib.metadata
    version = importlib.metadata.version("keras")
    raise ImportError(
        f"the backend {NAME} does not know this Keras, {version}: {module} lists the backends at {count} places, where at "
        f"least {PLACES[module]} were expected. Install Keras 3.10 to 3.15, or a newer keras_gradus; KERAS_BACKEND chooses "
        "another backend")


def uses_host():
    """True where no TensorFlow is installed, or where its name is gradus.tensorflow's, as in programs of gradus.run."""
    import importlib.util
    if sys.modules.get("tensorflow") is not None:
        return sys.modules["tensorflow"].__name__ == "gradus.tensorflow"
    try:
        spec = importlib.util.find_spec("tensorflow")
    except (ImportError, ValueError):
        return True
    return spec is None or spec.loader_state == "gradus.tensorflow"


def _host_loader(spec):
    import importlib.machinery

    class Loader(importlib.machinery.SourceFileLoader):
        """Loads a module of Keras, and tells it of TensorFlow's names here."""

        def exec_module(self, module):
            super().exec_module(module)
            from keras_gradus import host_names
            HOST[module.__name__](module, host_names)
    return Loader(spec.name, spec.loader.path)


def _twin_spec(name):
    """The module of this backend under the name that the TensorFlow backend's has; None if it has none of this name."""
    import importlib
    import importlib.abc
    import importlib.util
    rest = name.removeprefix(THEIRS)
    ours = f"{OURS}.ops{rest}" if rest and rest[1:] not in ("random", "rnn") else OURS + rest
    if importlib.util.find_spec(ours) is None:
        return None

    class Loader(importlib.abc.Loader):
        """Gives the module, which exists under its own name."""

        def create_module(self, spec):
            from keras_gradus import host_names
            return importlib.import_module(ours) if rest else host_names.backend

        def exec_module(self, module):
            module.__spec__ = importlib.util.find_spec(ours)
    return importlib.util.spec_from_loader(name, Loader(), is_package=not rest)


def _loader(spec):
    import importlib.machinery
    import importlib.util

    class Loader(importlib.machinery.SourceFileLoader):
        """Compiles a module of Keras with the branches of this backend."""

        def get_code(self, fullname):
            source = importlib.util.decode_source(self.get_data(self.path))
            tree, count = with_branches(source, self.path)
            if count < PLACES[fullname] and not loads_packages(source):
                refuse(fullname, count)
            return compile(tree, self.path, "exec", dont_inherit=True)
    return Loader(spec.name, spec.loader.path)


class Finder:
    """Finds the modules of Keras that list backends, and those that work on the host, where this backend is the chosen one."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        is_twin = name == THEIRS or name.startswith(THEIRS + ".")
        if not (name in PLACES or name in HOST or is_twin) or chosen() != NAME or (name not in PLACES and not uses_host()):
            return None
        if is_twin:
            return _twin_spec(name)
        import importlib.machinery
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _loader(spec) if name in PLACES else _host_loader(spec)
        return spec


def install():
    """Adds the finder once, also after keras.config.set_backend has unloaded this module."""
    if not any(getattr(each, "__qualname__", "") == Finder.__qualname__ and each.__module__ == __name__
               for each in sys.meta_path):
        sys.meta_path.insert(0, Finder)
