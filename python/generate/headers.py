"""Reads the public headers by libclang into a model.Library."""
import pathlib
import re

import clang.cindex as ci

import comments
from model import Class, Enum, Function, Library, Overload, Parameter, Struct

KIND = ci.CursorKind
BASES = ("Module", "LossFunction", "Optimizer", "Metric", "Schedule")
RECORDS = (KIND.STRUCT_DECL, KIND.CLASS_DECL)
FUNCTION_NAMES = {"f": "function"}
MODES = ("gradus::training_t", "gradus::inference_t")
# Structs whose fields are arguments of their own: options, and what C++ gives as {.mask = m}.
FLATTENED = re.compile(r"(Options|OptionsOf|ThresholdOption|NamedAxis|NamedAxes|RecurrentInput|RecurrentWeights|RecurrentRun"
                       r"|AttentionMask|SufficientStatistics|BlockSize)$")


class HeaderError(Exception):
    """The headers cannot be read."""


def bare(spelling):
    """A type without const and reference. A reference that is written to stays one."""
    if spelling.endswith("&") and not spelling.endswith("&&") and not spelling.startswith("const "):
        return spelling
    return re.sub(r"^const ", "", spelling.rstrip("& "))


def parse(root, resource_dir):
    """The translation unit of gradus.h."""
    arguments = ["-x", "c++", "-std=c++20", f"-I{root}"] + (["-resource-dir", resource_dir] if resource_dir else [])
    unit = ci.Index.create().parse("every.h", args=arguments, unsaved_files=[("every.h", "#include <gradus/gradus.h>\n")],
                                   options=ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    errors = [str(d) for d in unit.diagnostics if d.severity >= ci.Diagnostic.Error]
    if errors:
        raise HeaderError("libclang cannot read gradus/gradus.h:\n" + "\n".join(errors[:10]) +
                          "\nGive --resource-dir, the folder of clang's own headers (clang -print-resource-dir).")
    return unit


class Reader:
    def __init__(self, root, resource_dir=None):
        self.root = pathlib.Path(root).resolve()
        self.unit = parse(self.root, resource_dir)
        self.headers = {h: comments.Comments(self.root, h) for h in comments.reader(self.root).public_headers()}
        names = {(f"{scope}::{name}" if scope else name): header
                 for header, all_of in self.headers.items() for scope, name in all_of.public_names()}
        self.library = Library({}, {}, {}, {}, {}, names)
        self.records = {}  # every struct and class by its name, the first definition

    def read(self):
        self.collect_records(self.unit.cursor)
        self.visit(self.unit.cursor, "")
        return self.library

    # ------------------------------------------------------------ places

    def header_of(self, cursor):
        """The public header in which a cursor stands, or None."""
        if not cursor.location.file:
            return None
        path = pathlib.Path(cursor.location.file.name)
        try:
            header = path.resolve().relative_to(self.root).as_posix()
        except ValueError:
            return None
        return header if header in self.headers else None

    def comments_of(self, cursor):
        return self.headers[self.header_of(cursor)]

    def docs(self, cursor):
        header = self.header_of(cursor)
        return self.headers[header].docs(cursor.extent.start.offset, cursor.spelling) if header else ""

    def is_public(self, cursor):
        return self.comments_of(cursor).is_public(cursor.extent.start.offset)

    # ------------------------------------------------------------ the walk

    def collect_records(self, scope):
        for cursor in scope.get_children():
            if cursor.kind == KIND.NAMESPACE:
                self.collect_records(cursor)
            elif cursor.kind in RECORDS and cursor.is_definition():
                self.records.setdefault(cursor.type.get_canonical().spelling, cursor)

    def visit(self, scope, namespace):
        for cursor in scope.get_children():
            if cursor.kind == KIND.NAMESPACE:
                inner = "" if cursor.spelling == "gradus" else f"{namespace}::{cursor.spelling}".removeprefix("::")
                if cursor.spelling == "gradus" or inner in comments.NAMESPACES:
                    self.visit(cursor, inner)
            elif self.header_of(cursor) and cursor.semantic_parent.kind == KIND.NAMESPACE:
                self.take(cursor, namespace)

    def take(self, cursor, namespace):
        if cursor.kind == KIND.ENUM_DECL and cursor.spelling:
            self.take_enum(cursor)
        elif not self.is_public(cursor):
            return
        elif cursor.kind == KIND.FUNCTION_DECL or (cursor.kind == KIND.FUNCTION_TEMPLATE):
            self.take_function(cursor, namespace)
        elif cursor.kind in RECORDS and cursor.is_definition():
            self.take_record(cursor)
        elif cursor.kind == KIND.TYPE_ALIAS_DECL:
            target = cursor.underlying_typedef_type.get_canonical().spelling.removeprefix("gradus::")
            self.library.aliases[cursor.spelling] = target

    def take_enum(self, cursor):
        full = cursor.type.get_canonical().spelling
        values = [c.spelling for c in cursor.get_children() if c.kind == KIND.ENUM_CONSTANT_DECL]
        self.library.enums[full] = Enum(cursor.spelling, full, values, self.header_of(cursor))

    def take_function(self, cursor, namespace):
        if cursor.spelling.startswith("operator") or cursor.availability == ci.AvailabilityKind.NOT_AVAILABLE:
            return
        overload = self.overload_of(cursor)
        if overload is None:
            return
        name = f"{namespace}::{cursor.spelling}" if namespace else cursor.spelling
        function = self.library.functions.setdefault(name, Function(cursor.spelling, namespace, self.header_of(cursor)))
        function.overloads.append(overload)

    def take_record(self, cursor):
        base = self.base_of(cursor)
        name = cursor.type.get_canonical().spelling.removeprefix("gradus::")
        if not base and cursor.spelling not in BASES:
            fields = self.fields_of(cursor.type)
            if fields:
                full = cursor.type.get_canonical().spelling
                self.library.structs[full] = Struct(cursor.spelling, full, self.header_of(cursor), self.docs(cursor), fields)
            return
        parents = [c.type.get_canonical().spelling.removeprefix("gradus::") for c in cursor.get_children()
                   if c.kind == KIND.CXX_BASE_SPECIFIER]
        made = Class(name, base, self.header_of(cursor), self.docs(cursor), parents[0] if parents else "")
        made.constructors = self.constructors_of(cursor)
        made.methods = self.methods_of(cursor)
        self.library.classes[name] = made

    def base_of(self, cursor):
        """The class of BASES from which a record derives, by one or several steps."""
        for child in cursor.get_children():
            if child.kind != KIND.CXX_BASE_SPECIFIER:
                continue
            parent = child.type.get_canonical().spelling
            short = parent.removeprefix("gradus::")
            if short in BASES:
                return short
            if parent in self.records:
                return self.base_of(self.records[parent])
        return ""

    def members(self, cursor, kinds):
        return [c for c in cursor.get_children() if c.kind in kinds
                and c.access_specifier == ci.AccessSpecifier.PUBLIC
                and c.availability != ci.AvailabilityKind.NOT_AVAILABLE and self.is_public(c)]

    def constructors_of(self, cursor):
        made = []
        templates = [c for c in self.members(cursor, (KIND.FUNCTION_TEMPLATE,)) if c.spelling.startswith(cursor.spelling)]
        for constructor in self.members(cursor, (KIND.CONSTRUCTOR,)) + templates:
            overload = self.overload_of(constructor)
            if overload is None or [p.type for p in overload.parameters] == [cursor.type.get_canonical().spelling]:
                continue
            overload.result = ""
            made.append(overload)
        return made

    def methods_of(self, cursor):
        methods = {}
        for method in self.members(cursor, (KIND.CXX_METHOD,)):
            name = "__call__" if method.spelling == "operator()" else method.spelling
            if name.startswith("operator") or method.is_static_method():
                continue
            overload = self.overload_of(method)
            if any(p.type in MODES for p in overload.parameters):
                continue  # Python says training=True
            methods.setdefault(name, Function(name, "", self.header_of(method))).overloads.append(overload)
        return list(methods.values())

    # ------------------------------------------------------------ parameters and fields

    def overload_of(self, cursor):
        """None for a template whose arguments Python cannot choose."""
        form = {}
        if cursor.kind == KIND.FUNCTION_TEMPLATE:
            form = self.form_of(cursor)
            if form is None:
                return None
        parameters = [self.parameter(p, k, form) for k, p in enumerate(self.parameter_cursors(cursor))]
        result = "" if cursor.kind == KIND.CONSTRUCTOR else bare(cursor.result_type.get_canonical().spelling)
        return Overload(parameters, result, self.docs(cursor), self.header_of(cursor), cursor.location.line)

    @staticmethod
    def parameter_cursors(cursor):
        return [c for c in cursor.get_children() if c.kind == KIND.PARM_DECL]

    def form_of(self, cursor):
        """Of a template: its type parameter and what Python gives for it; "" for `template <class = void>`."""
        parameters = [c for c in cursor.get_children() if c.kind == KIND.TEMPLATE_TYPE_PARAMETER]
        text = " ".join(self.text_of(cursor)[:200].split())
        others = [c for c in cursor.get_children() if c.kind in (KIND.TEMPLATE_NON_TYPE_PARAMETER,
                                                                 KIND.TEMPLATE_TEMPLATE_PARAMETER)]
        if len(parameters) != 1 or others:
            return None
        if re.match(r"template <class = void>", text):
            return {}
        if re.match(r"template <PredictionForm P>", text):
            return {"P": "PredictionForm"}
        function = re.match(r"template <class F> requires (?:std::)?is_invocable_r_v<Tensor, (?:const )?F&, "
                            r"(Tensor(?:, Tensor)?)>", text)
        return {"F": "Function1" if function[1] == "Tensor" else "Function2"} if function else None

    def parameter(self, cursor, position, form):
        name = cursor.spelling or f"argument_{position}"
        spelling = bare(cursor.type.get_canonical().spelling)
        if form.get(cursor.type.spelling) == "PredictionForm":
            return Parameter("from_logits", "PredictionForm", None, "True for logits, False for probabilities")
        if cursor.type.spelling in form:
            return Parameter(FUNCTION_NAMES.get(name, name), form[cursor.type.spelling])
        return Parameter(name, spelling, self.default_of(cursor), "", self.options_of(cursor.type))

    def text_of(self, cursor):
        start, end = cursor.extent.start, cursor.extent.end
        data = pathlib.Path(start.file.name).read_bytes()
        return data[start.offset:end.offset].decode()

    def default_of(self, cursor):
        """The expression behind the `=` of a parameter."""
        text = self.text_of(cursor)
        return text.split("=", 1)[1].strip() if "=" in text else None

    def options_of(self, type_):
        """The fields of a struct of options, as parameters; None for other types."""
        target = type_.get_pointee() if type_.kind in (ci.TypeKind.LVALUEREFERENCE, ci.TypeKind.RVALUEREFERENCE) else type_
        target = target.get_canonical()
        name = target.get_declaration().spelling
        return self.fields_of(target) if FLATTENED.search(name) else None

    def fields_of(self, type_):
        """All fields of a struct, those of its bases first; empty if it has members that are not for users."""
        fields = []
        declaration = type_.get_canonical().get_declaration()
        for child in declaration.get_children():
            if child.kind == KIND.CXX_BASE_SPECIFIER:
                fields += self.fields_of(child.type)
        for field in type_.get_canonical().get_fields():
            if field.access_specifier == ci.AccessSpecifier.PRIVATE:
                return []
            spelling = bare(field.type.get_canonical().spelling)
            if re.match(r"gradus::detail::(No|Given)", spelling):
                continue  # a name that is refused, and what no user gives
            fields.append(Parameter(field.spelling, spelling, self.initial_of(field), self.docs(field)))
        return fields

    def initial_of(self, field):
        """The text of a field's first value; None if it has none."""
        if not any(c.kind.is_expression() for c in field.get_children()):
            return None
        value = [c for c in field.get_children() if c.kind.is_expression()][-1]
        return self.text_of(value).removeprefix("=").strip() or "{}"
