"""C++ types as Python sees them: which of them can be arguments and results, and how stubs spell them."""
import re

# By canonical C++ type: the type of Argument<> that makes it, and its annotation.
ARGUMENTS = {
    "gradus::Tensor": ("Tensor", "TensorLike"),
    "gradus::NumberOrTensor": ("Operand", "TensorLike"),
    "gradus::Scalar": ("Scalar", "Number"),
    "gradus::Shape": ("Shape", "ShapeLike"),
    "gradus::DType": ("DType", "DTypeLike"),
    "gradus::Spec": ("Spec", "SpecLike"),
    "std::vector<gradus::Tensor>": ("Tensors", "Sequence[TensorLike]"),
    "std::span<const gradus::Tensor>": ("Tensors", "Sequence[TensorLike]"),
    "bool": ("bool", "bool"),
    "int": ("int", "int"),
    "long": ("long", "int"),
    "unsigned int": ("unsigned int", "int"),
    "unsigned long": ("unsigned long", "int"),
    "float": ("float", "float"),
    "double": ("double", "float"),
    "char": ("char", "str"),
    "PredictionForm": ("bool", "bool"),
    "Function1": ("Function1", "Callable[[Tensor], TensorLike]"),
    "Function2": ("Function2", "Callable[[Tensor, Tensor], TensorLike]"),
    "std::basic_string<char>": ("std::string", "str"),
    "std::basic_string_view<char>": ("std::string", "str"),
    "std::filesystem::path": ("std::filesystem::path", "str | os.PathLike[str]"),
    "std::chrono::duration<double>": ("std::chrono::duration<double>", "float"),
    "std::vector<std::basic_string<char>>": ("std::vector<std::string>", "Sequence[str]"),
    "std::vector<int>": ("std::vector<int>", "int | Sequence[int]"),
    "std::vector<long>": ("std::vector<long>", "int | Sequence[int]"),
    "std::vector<double>": ("std::vector<double>", "Sequence[float]"),
    "std::vector<std::array<long, 2>>": ("std::vector<std::array<long, 2>>", "Sequence[tuple[int, int]]"),
    "gradus::Single": ("Single", "int | Sequence[int]"),
    "gradus::Pair": ("Pair", "int | Sequence[int]"),
    "gradus::Triple": ("Triple", "int | Sequence[int]"),
    "gradus::OptionalSize<gradus::Single>": ("OptionalSize<Single>", "int | Sequence[int]"),
    "gradus::OptionalSize<gradus::Pair>": ("OptionalSize<Pair>", "int | Sequence[int]"),
    "gradus::OptionalSize<gradus::Triple>": ("OptionalSize<Triple>", "int | Sequence[int]"),
    "gradus::Factor": ("Factor", "float | tuple[float, float]"),
    "gradus::Steps": ("Steps", "float"),
    "gradus::Activation": ("Activation", "str | Callable[[Tensor], TensorLike]"),
    "gradus::Initializer": ("Initializer", "str | Initializer | Callable[[tuple[int, ...]], TensorLike]"),
    "gradus::Regularizer": ("Regularizer", "str | Regularizer | Callable[[Tensor], TensorLike]"),
    "gradus::Schedule": ("Schedule", "float | Schedule | Callable[[Tensor], TensorLike]"),
    "gradus::PolicyOption": ("PolicyOption", "str"),
    "gradus::Policy": ("Policy", "str"),
    "gradus::Module": ("Module", "Module"),
    "std::vector<gradus::Module>": ("std::vector<Module>", "Sequence[Module]"),
    "gradus::RecurrentCell": ("RecurrentCell", "RecurrentCell"),
    "std::vector<gradus::RecurrentCell>": ("std::vector<RecurrentCell>", "Sequence[RecurrentCell]"),
    "gradus::Variables": ("Variables", "Sequence[Variable]"),
    "std::function<gradus::Tensor (const gradus::Tensor &)>": ("Function1", "Callable[[Tensor], TensorLike]"),
    "Copied": ("Copied", "Module"),
    "gradus::Module &": ("Bound<Module>", "Module"),
    "gradus::Variable &": ("Bound<Variable>", "Variable"),
    "gradus::Sequential": ("Bound<Sequential>", "Sequential"),
    "gradus::Dense": ("Bound<Dense>", "Dense"),
    "gradus::Gradients": ("Bound<Gradients>", "Gradients"),
    "gradus::ClippedGradients": ("Bound<ClippedGradients>", "ClippedGradients"),
}
RESULTS = {
    "void": "None",
    "gradus::Tensor": "Tensor",
    "std::vector<gradus::Tensor>": "list[Tensor]",
    "bool": "bool",
    "int": "int",
    "long": "int",
    "unsigned long": "int",
    "double": "float",
    "std::basic_string<char>": "str",
    "std::vector<double>": "list[float]",
    "std::vector<std::basic_string<char>>": "list[str]",
    "gradus::Variables": "list[Variable]",
    "gradus::Variable &": "Variable",
    "gradus::Initializer": "Initializer",
    "gradus::Regularizer": "Regularizer",
    "gradus::Callback": "Callback",
    "gradus::Loss": "Loss",
    "gradus::Module &": "Module",
    "gradus::Sequential": "Sequential",
    "gradus::Spec": "TensorSpec",
}


class Unsupported(Exception):
    """A type that Python cannot give or get; the text says which."""


class Conversions:
    def __init__(self, library):
        self.enums = library.enums
        self.structs = library.structs

    def argument(self, type_):
        """(C++ type of the Argument<>, annotation) of a canonical type."""
        if type_ in ARGUMENTS:
            return ARGUMENTS[type_]
        if type_ in self.enums:
            return type_, "Literal[" + ", ".join(f'"{value.lower()}"' for value in self.enums[type_].values) + "]"
        optional = re.fullmatch(r"std::optional<(.*)>", type_)
        if optional:
            made, annotation = self.argument(optional[1])
            return f"std::optional<{made}>", annotation
        array = re.fullmatch(r"std::array<(long|double), (\d+)>", type_)
        if array:
            return type_, f"Sequence[{'int' if array[1] == 'long' else 'float'}]"
        raise Unsupported(type_)

    def result(self, type_):
        """The annotation of a result."""
        if type_ in RESULTS:
            return RESULTS[type_]
        if type_ in self.structs:
            for field in self.structs[type_].fields:
                self.result(field.type)
            return self.structs[type_].name
        rows = re.fullmatch(r"std::vector<(gradus::\w+)>", type_)
        if rows:
            return f"list[{self.result(rows[1])}]"
        raise Unsupported(type_)

    def tuples_of(self, type_):
        """The structs that become named tuples in a result of this type."""
        if type_ in self.structs and type_ not in RESULTS:
            fields = self.structs[type_].fields
            return [type_] + [inner for field in fields for inner in self.tuples_of(field.type)]
        rows = re.fullmatch(r"std::vector<(gradus::\w+)>", type_)
        return self.tuples_of(rows[1]) if rows else []

    def shown_default(self, parameter):
        """The default as Python's signature shows it: a literal where the header has one, else None."""
        text = parameter.default
        if re.fullmatch(r"-?\d+", text):
            return text
        if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e-?\d+)?f?", text):
            return repr(float(text.rstrip("f")))
        if text in ("true", "false"):
            return text.capitalize()
        if parameter.type in self.enums:
            return repr(text.split("::")[-1].lower())
        if parameter.type in ("gradus::Activation", "gradus::Initializer") and re.fullmatch(r"[\w:]+", text):
            return repr(text.split("::")[-1])
        if parameter.type == "gradus::DType" and re.fullmatch(r"\w+", text):
            return repr(DTYPES.get(text, text))
        return "None"


DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
          "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
          "boolean": "bool"}
