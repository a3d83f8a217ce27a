/// Numbers in place of symbols. Attributes, and the regions among them, are rewritten in their text form, where a
/// dimension stands behind a bracket, a comma or an equals sign: s0, 784*s0, s0*s1+2, ((s0+1)/2).
#include "gradus/graph/evaluate.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

bool begins_dimension(char before) { return before == '[' || before == ',' || before == '='; }
bool is_of_dimension(char c) {
  return (c >= '0' && c <= '9') || std::string_view("s*+-()/^").find(c) != std::string_view::npos;
}

/// `written` with extents for dimensions. The first letters of a word such as `sum` are none.
std::string with_numbers(std::string_view written, std::span<const std::int64_t> symbols) {
  std::string out;
  for (std::size_t i = 0; i < written.size();) {
    std::size_t end = i;
    if (i > 0 && begins_dimension(written[i - 1]))
      while (end < written.size() && is_of_dimension(written[end])) ++end;
    const std::string_view word = written.substr(i, end - i);
    const bool is_whole =
        end == written.size() || std::string_view(",]; |}").find(written[end]) != std::string_view::npos;
    if (is_whole && word.find('s') != std::string_view::npos) {
      out += std::to_string(dimension::evaluate(dimension::from_text(word), symbols));
      i = end;
    } else {
      out += written[i++];
    }
  }
  return out;
}

}  // namespace

AnyOp evaluated(const AnyOp& op, std::span<const std::int64_t> symbols) {
  if (!op || !op->print) return op;
  TextStream out;
  op->print(op.attributes(), out);
  const std::string before = out.str(), after = with_numbers(before, symbols);
  return after == before ? op : parse_op(op->name, std::string_view(after).substr(1, after.size() - 2));
}

Graph evaluated(const Graph& graph, std::span<const std::int64_t> symbols) {
  Graph at_sizes = graph;
  for (Value& v : at_sizes.values) {
    v.spec.shape = v.spec.shape.evaluated(symbols);
    v.op = evaluated(v.op, symbols);
  }
  return at_sizes;
}

}  // namespace gradus
