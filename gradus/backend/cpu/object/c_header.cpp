#include "gradus/backend/cpu/object/c_header.h"
#include <algorithm>
#include <charconv>
#include <limits>
#include "gradus/backend/c_words.h"
#include "gradus/base/error.h"
#include "gradus/base/numbered.h"
#include "gradus/base/version.h"

namespace gradus::object {
namespace {

/// Names of the state's fields that are not Variables.
constexpr std::string_view own_fields[] = {"random_state", "failure", "failure_index", "failure_value", "workspace"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view c_type(DType t) {
  constexpr std::string_view types[] = {"double", "float",   "uint16_t", "uint16_t", "int64_t",  "int32_t", "int16_t",
                                        "int8_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t"};
  return types[static_cast<int>(t)];
}
/// Where C's type is not the spec's own.
std::string_view note_on(const Spec& spec) {
  if (spec.shape.size() == 0) return "has no elements: C has no empty arrays";
  const DType t = spec.dtype;
  return t == f16 ? "IEEE half precision" : t == bf16 ? "bfloat16" : t == boolean ? "0 or 1" : "";
}

bool is_int_in_c(std::int64_t number) { return number <= std::numeric_limits<std::int32_t>::max(); }

/// "64 * 16"; "1" of a scalar, and where there is nothing: C has no empty arrays. A product that no int holds is
/// computed in 64 bits.
std::string sizes(const Shape& shape) {
  if (shape.size() == 0 || shape.rank() == 0) return "1";
  const std::string first = std::to_string(shape[0]);
  std::string all = is_int_in_c(shape.size()) ? first : text("INT64_C(", first, ")");
  for (int i = 1; i < shape.rank(); ++i) all += text(" * ", shape[i]);
  return all;
}

/// The bytes of a field, of which the struct has at least one element.
std::int64_t bytes_in_c(const Spec& spec) { return std::max(bytes_of(spec), size_of(spec.dtype)); }

/// Text in a comment may not end it.
std::string for_comment(std::string_view line) {
  std::string safe = printable(line, true);
  for (std::size_t at; (at = safe.find("*/")) != std::string::npos;) safe.replace(at, 2, "* /");
  for (std::size_t at; (at = safe.find("/*")) != std::string::npos;) safe.replace(at, 2, "/ *");
  for (std::size_t at; (at = safe.find("?\?/")) != std::string::npos;) safe.replace(at, 3, "?? /");  // a trigraph
  return safe;
}

std::string parameter_name(std::size_t k) { return k < 2 ? std::string(1, "xy"[k]) : "input_" + std::to_string(k); }

std::string signature(const HeaderText& h, const ObjectStep& step) {
  using cpu_backend::Returns;
  const Returns returns = returns_of(step);
  std::string all = returns == Returns::f32 ? "float " : returns == Returns::f64 ? "double " : "void ";
  all += text(step.name, "(struct ", h.all.name, "_state* state");
  for (std::size_t k = 0; k < step.arguments.size(); ++k) {
    const Spec& spec = step.arguments[k];
    all += text(", const ", c_type(spec.dtype), " ", parameter_name(k), "[", sizes(spec.shape), "]");
  }
  for (std::size_t k = returns == Returns::nothing ? 0 : 1; k < step.results.size(); ++k) {
    const Spec& spec = step.results[k].spec;
    all += text(", ", c_type(spec.dtype), " result_", k, "[", sizes(spec.shape), "]");
  }
  return all + ")";
}

/// A declaration for each step.
std::string functions_of(const HeaderText& h) {
  std::string all;
  for (const ObjectStep& step : h.all.steps)
    all += text("/* One run", step.title.empty() ? "" : " of ", step.title, ". */\n", signature(h, step), ";\n");
  return all;
}

std::string struct_of(const HeaderText& h) {
  std::string all = text("struct ", h.all.name, "_state {\n");
  std::vector<std::string> used;
  std::int64_t end = 0;
  int paddings = 0;
  const auto pad_to = [&](std::int64_t offset) {
    if (offset > end) all += text("  unsigned char padding_", paddings++, "[", offset - end, "];\n");
  };
  for (std::size_t k = 0; k < h.all.fields.size(); ++k) {
    const ObjectField& field = h.all.fields[k];
    pad_to(h.places.fields[k]);
    const std::string name = identifier_of(field.name, used);
    const bool is_scalar = field.spec.shape.rank() == 0;
    const std::string_view note = note_on(field.spec);
    all += text("  ", c_type(field.spec.dtype), " ", name, is_scalar ? "" : text("[", sizes(field.spec.shape), "]"),
                ";", note.empty() ? "" : text("  /* ", note, " */"), "\n");
    end = h.places.fields[k] + bytes_in_c(field.spec);
  }
  if (h.places.random_state >= 0) {
    pad_to(h.places.random_state);
    all += "  uint64_t random_state;\n";
    end = h.places.random_state + 8;
  }
  pad_to(h.places.failure);
  all += "  int64_t failure, failure_index, failure_value; /* 0, or which check the last call has failed; below */\n";
  end = h.places.failure + 24;
  pad_to(h.places.workspace);
  return all + text("  unsigned char workspace[", h.workspace_bytes, "];\n};\n");
}

/// Read by state_layout().
std::string layout_of(const HeaderText& h) {
  std::string all = text("/* Layout of the state, for load_object_state of Gradus: bytes ", h.bytes, "\n");
  for (std::size_t k = 0; k < h.all.fields.size(); ++k) {
    if (h.all.fields[k].is_constant) continue;
    const Spec& spec = h.all.fields[k].spec;
    all += text("   field ", h.places.fields[k], " ", spec.dtype, " ", spec.shape.rank());
    for (const std::int64_t d : spec.shape) all += text(" ", d);
    all += text(" ", for_comment(h.all.fields[k].name), "\n");
  }
  if (h.places.random_state >= 0) all += text("   random_state ", h.places.random_state, "\n");
  return all + "*/\n";
}

std::string failures_of(const HeaderText& h) {
  if (h.failures.empty()) return "";
  std::string all = "/* What `failure` says ({index} is failure_index, {value} is failure_value):\n";
  for (std::size_t k = 0; k < h.failures.size(); ++k) all += text("   ", k + 1, ": ", for_comment(h.failures[k]), "\n");
  return all + "   The state is as it was before such a call, and what it returns is NaN. */\n";
}

/// How a state gets its first values.
std::string beginning_of(const HeaderText& h) {
  const std::string& name = h.all.name;
  if (h.all.weights_file.empty())
    return text("/* Writes the values of when it was compiled. */\nvoid ", name, "_init(struct ", name,
                "_state* state);\n");
  const std::int64_t bytes = h.places.workspace;  // an enumerator is an int
  return text("/* The first values of a state are in a file of so many bytes, ", for_comment(h.all.weights_file),
              ": fread them to where it\n   begins. */\n",
              is_int_in_c(bytes) ? text("enum { ", name, "_weights_bytes = ", bytes, " };\n")
                                 : text("#define ", name, "_weights_bytes INT64_C(", bytes, ")\n"));
}

/// As the stem is written: "net" and "Net" are two objects.
std::string guard_of(const std::string& name) { return text("GRADUS_", name, "_H"); }

}  // namespace

std::string identifier_of(const std::string& name, std::vector<std::string>& used) {
  std::string id;
  for (const char c : name) id += is_letter(c) || is_digit(c) ? c : '_';
  const bool is_own = std::ranges::find(own_fields, std::string_view(id)) != std::end(own_fields);
  const bool is_reserved = is_own || is_word_of_c(id);
  if (id.empty() || is_digit(id.front()) || id.front() == '_' || is_reserved || id.starts_with("padding_"))
    id = "v_" + id;
  std::string free = id;
  for (int k = 2; std::ranges::find(used, free) != used.end(); ++k) free = text(id, "_", k);
  used.push_back(free);
  return free;
}

std::string to_c(const HeaderText& h) {
  const std::string& name = h.all.name;
  const std::string guard = guard_of(name);
  return text(
      "/* ", name, h.all.steps.size() == 1 ? ": a step that was" : ": steps with one state that were",
      " compiled by Gradus, for ", h.instruction_set,
      ". The code allocates nothing, starts no\n   thread, and needs memcpy, memset and memmove alone. One state is ",
      "used by one thread at a time. */\n#ifndef ", guard, "\n#define ", guard,
      "\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      "/* Where it begins is free; calls are fastest where that is a multiple of 64. */\n", struct_of(h), "\n",
      beginning_of(h), "/* The version of Gradus's numeric contract whose bits results have. */\nenum { ", name,
      "_numeric_contract = ", numeric_contract, " };\n",
      "/* 1 if this processor has the instructions that the code needs, else 0: then nothing else may be called. ",
      "*/\nint ", name, "_supported(void);\n", functions_of(h), "\n", failures_of(h), layout_of(h),
      h.all.declarations.empty() ? "" : "\n", h.all.declarations, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

}  // namespace gradus::object

namespace gradus {
namespace {

/// The words of a line, in order.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string_view word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const std::string_view first = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(first.size());
    return first;
  }
  std::int64_t number() {
    const std::string_view from = word();
    std::int64_t read = -1;
    const auto [end, problem] = std::from_chars(from.data(), from.data() + from.size(), read);
    require<DataError>(problem == std::errc() && end == from.data() + from.size() && read >= 0,
                       "the header of an object file: expected a number, given `", printable(from, true), "`");
    return read;
  }
  std::string_view rest() { return rest_.empty() ? rest_ : rest_.substr(1); }

 private:
  std::string_view rest_;
};

DType dtype_named(std::string_view name) {
  for (const DType t : all_dtypes)
    if (name_of(t) == name) return t;
  throw DataError(text("the header of an object file: there is no dtype `", printable(name, true), "`"));
}

StateField field_in(Words& words) {
  constexpr std::int64_t most_dimensions = 64;
  StateField field;
  field.offset = words.number();
  field.spec.dtype = dtype_named(words.word());
  std::vector<std::int64_t> dims(at(std::min(words.number(), most_dimensions)));
  for (std::int64_t& d : dims) d = words.number();
  field.spec.shape = Shape(std::span<const std::int64_t>(dims));
  field.name = words.rest();
  return field;
}

}  // namespace

std::string name_in_header(const std::string& name) { return object::for_comment(name); }

StateLayout state_layout(const std::string& header) {
  constexpr std::string_view begin = "/* Layout of the state, for load_object_state of Gradus: bytes ";
  const std::size_t place = header.find(begin);
  require<DataError>(place != std::string::npos, "load_object_state: this is no header that export_object has written");
  std::string_view rest = std::string_view(header).substr(place + begin.size());
  StateLayout layout;
  for (bool is_first = true;; is_first = false) {
    const std::size_t end = rest.find('\n');
    require<DataError>(end != std::string_view::npos, "load_object_state: the header ends within its layout");
    Words words(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (is_first) {
      layout.bytes = words.number();
      continue;
    }
    const std::string_view kind = words.word();
    if (kind == "*/") break;
    if (kind == "random_state") layout.random_state = words.number();
    else if (kind == "field") layout.fields.push_back(field_in(words));
    else throw DataError("load_object_state: the header has another layout than this version of Gradus knows");
  }
  for (const StateField& field : layout.fields)
    require<DataError>(bytes_of(field.spec) <= layout.bytes && field.offset <= layout.bytes - bytes_of(field.spec),
                       "load_object_state: the header has a field that lies outside of its state");
  require<DataError>(layout.random_state <= layout.bytes - 8, "load_object_state: the header's layout is too short");
  return layout;
}

}  // namespace gradus
