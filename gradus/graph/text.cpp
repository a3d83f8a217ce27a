/// The text form of a graph, one value a line:
///   %0 = input : f32[64,784]
///   %1 = constant{0x3f800000} : f32[]
///   %2 = matmul{transpose_a=false; transpose_b=true} %0 %1 : f32[64,10]
///   return %2 %0
///   dying %0
/// A region among the attributes of an op is such a text in braces, with | between its values.
#include <charconv>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"

namespace gradus {
namespace {

std::string hexadecimal(std::uint64_t bits) {
  char digits[17];
  return std::string("0x") + std::string(digits, std::to_chars(digits, digits + 16, bits, 16).ptr);
}

void print_list(std::ostream& out, const char* word, const std::vector<int>& values) {
  out << word;
  for (int i : values) out << " %" << i;
}

void print_graph(std::ostream& out, const Graph& graph, const char* separator) {
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    out << '%' << i << " = ";
    if (v.op) out << v.op;
    else if (v.is_constant) out << "constant{" << hexadecimal(v.constant) << '}';
    else out << "input";
    for (int operand : v.in) out << " %" << operand;
    out << " : " << v.spec << separator;
  }
  print_list(out, "return", graph.outputs);
  if (graph.dying.empty()) return;
  out << separator;
  print_list(out, "dying", graph.dying);
}

/// Reads one line after the other; every complaint names its line.
class Parser {
 public:
  Parser(std::string_view source, char separator) : rest_(source), separator_(separator) {}

  Graph parse() {
    bool returned = false;
    while (next_line()) {
      if (line_.empty() || line_.starts_with('#')) continue;
      if (take("return")) {
        complain_unless(!returned, "a second return");
        returned = true;
        while (!line_.empty()) graph_.outputs.push_back(parse_reference());
      } else if (take("dying")) {
        while (!line_.empty()) graph_.dying.push_back(parse_input_reference());
      } else {
        complain_unless(!returned, "a value after return");
        parse_value();
      }
    }
    complain_unless(returned, "there is no return");
    return std::move(graph_);
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end =
        separator_ == '\n' ? std::min(rest_.find('\n'), rest_.size()) : detail::find_outside_braces(rest_, separator_);
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    skip_blanks();
    while (!line_.empty() && (line_.back() == ' ' || line_.back() == '\r')) line_.remove_suffix(1);
    return true;
  }

  template <class... Parts> void complain_unless(bool ok, const Parts&... parts) {
    require(ok, "graph text, line ", number_, ": ", parts...);
  }
  void skip_blanks() { line_.remove_prefix(std::min(line_.find_first_not_of(' '), line_.size())); }

  /// Takes `word` if the line goes on with it.
  bool take(std::string_view word) {
    if (!line_.starts_with(word)) return false;
    const std::string_view after = line_.substr(word.size());
    if (!after.empty() && after[0] != ' ' && after[0] != '{' && word != "%") return false;
    line_ = after;
    skip_blanks();
    return true;
  }

  int parse_reference() {
    complain_unless(line_.starts_with('%'), "expected a value such as %3 at `", line_, "`");
    int i = -1;
    const auto [end, problem] = std::from_chars(line_.data() + 1, line_.data() + line_.size(), i);
    complain_unless(problem == std::errc() && i >= 0 && i < graph_.size(), "no value before stands at `", line_, "`");
    line_.remove_prefix(static_cast<std::size_t>(end - line_.data()));
    skip_blanks();
    return i;
  }
  int parse_input_reference() {
    const int i = parse_reference();
    complain_unless(graph_[i].is_input(), "%", i, " is no input");
    return i;
  }

  void parse_value() {
    const std::string expected = "%" + std::to_string(graph_.size());
    complain_unless(take(expected), "expected `", expected, " = op ... : spec`, got `", line_, "`");
    complain_unless(take("="), "expected = after ", expected);
    const std::size_t colon = line_.rfind(" : ");
    complain_unless(colon != std::string_view::npos, "expected ` : spec` at the end");
    Value v;
    try {
      v.spec = spec_from_text(line_.substr(colon + 3));
      bytes_or_symbolic(v.spec);
      line_ = line_.substr(0, colon);
      parse_operation(v);
    } catch (const InternalError&) { throw; } catch (const Error& error) {
      complain_unless(false, error.what());
    }
    graph_.add(std::move(v));
  }

  void bytes_or_symbolic(const Spec& spec) {
    for (std::int64_t d : spec.shape) complain_unless(d != any_size, "? has no size; write a symbol such as s0");
    if (!spec.shape.is_symbolic()) bytes_of(spec);
  }

  void parse_operation(Value& v) {
    const std::size_t name_end = std::min(line_.find_first_of(" {"), line_.size());
    const std::string_view name = line_.substr(0, name_end);
    line_.remove_prefix(name_end);
    std::string_view attributes;
    if (line_.starts_with('{')) {
      line_.remove_prefix(1);
      const std::size_t close = detail::find_outside_braces(line_, '}');
      complain_unless(close != line_.size(), "{ is never closed");
      attributes = line_.substr(0, close);
      line_.remove_prefix(close + 1);
    }
    skip_blanks();
    if (name == "input") {
      graph_.inputs.push_back(graph_.size());
      complain_unless(attributes.empty() && line_.empty(), "an input has neither attributes nor operands");
    } else if (name == "constant") {
      parse_constant(v, attributes);
    } else {
      v.op = parse_op(name, attributes);
      std::vector<Spec> specs;
      while (!line_.empty()) {
        v.in.push_back(parse_reference());
        specs.push_back(graph_[v.in.back()].spec);
      }
      const Spec inferred = v.op.infer(specs);
      complain_unless(inferred == v.spec, name, " gives ", inferred, ", not ", v.spec);
    }
  }

  void parse_constant(Value& v, std::string_view attributes) {
    complain_unless(attributes.starts_with("0x"), "expected constant{0x...}");
    const char* end = attributes.data() + attributes.size();
    const auto [stop, problem] = std::from_chars(attributes.data() + 2, end, v.constant, 16);
    complain_unless(problem == std::errc() && stop == end, "`", attributes, "` is no hexadecimal number of 64 bits");
    const std::int64_t width = size_of(v.spec.dtype) * 8;
    complain_unless(width == 64 || v.constant >> width == 0, "`", attributes, "` does not fit ", v.spec.dtype);
    complain_unless(v.spec.dtype != boolean || v.constant < 2, "a bool is 0x0 or 0x1");
    v.is_constant = true;
  }

  std::string_view rest_, line_;
  const char separator_;
  int number_ = 0;
  Graph graph_;
};

}  // namespace

std::string to_text(const Graph& graph) {
  TextStream out;
  print_graph(out, graph, "\n");
  out << '\n';
  return std::move(out).str();
}

std::string to_text(const Region& region) {
  TextStream out;
  print_graph(out, region.graph(), " | ");
  return std::move(out).str();
}

Graph parse_graph(std::string_view source) { return Parser(source, '\n').parse(); }

Region detail::parse_region(std::string_view source) {
  thread_local int depth = 0;
  require(depth < Region::max_depth, "graph text: regions are nested more than ", Region::max_depth, " deep");
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } const deeper;
  return Region(Parser(source, '|').parse());
}

}  // namespace gradus
