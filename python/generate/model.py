"""The public names of the library as the emitters see them: functions, classes, structs of options and results, enums.

A type is its canonical C++ spelling without const and reference, such as `std::vector<long>` or `gradus::Padding`.
"""
import dataclasses


@dataclasses.dataclass
class Parameter:
    name: str
    type: str
    default: str | None = None  # the C++ expression, as the header has it; None: it must be given
    docs: str = ""
    fields: list | None = None  # of a struct of options: Parameters, which become keyword arguments

    @property
    def is_required(self):
        return self.default is None


@dataclasses.dataclass
class Overload:
    """One function, or one constructor of a class."""
    parameters: list
    result: str  # empty: a constructor
    docs: str = ""
    header: str = ""
    line: int = 0


@dataclasses.dataclass
class Function:
    name: str
    scope: str  # its namespace within gradus: "", "random"
    header: str
    overloads: list = dataclasses.field(default_factory=list)

    @property
    def full_name(self):
        return f"{self.scope}::{self.name}" if self.scope else self.name


@dataclasses.dataclass
class Class:
    name: str
    base: str  # Module, LossFunction, Optimizer, Metric, Schedule; empty: none of these
    header: str
    docs: str = ""
    parent: str = ""  # the class that it derives from directly
    constructors: list = dataclasses.field(default_factory=list)
    methods: list = dataclasses.field(default_factory=list)  # Functions


@dataclasses.dataclass
class Struct:
    """A struct with public fields and nothing to call."""
    name: str
    full_name: str
    header: str
    docs: str
    fields: list  # Parameters

    @property
    def module(self):
        """The module of the named tuple that it becomes."""
        return "ops" if self.header.startswith("gradus/ops/") else "nn"


@dataclasses.dataclass
class Enum:
    name: str
    full_name: str
    values: list
    header: str


@dataclasses.dataclass
class Library:
    functions: dict  # by full name
    classes: dict  # by name
    structs: dict  # by canonical type, those of results and options
    enums: dict  # by canonical type
    aliases: dict  # by name: the class that it names
    names: dict  # every public name that the headers document, by full name: its header
