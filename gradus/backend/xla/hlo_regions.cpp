/// Ops with regions: reductions, loops, branches.
#include <utility>
#include "gradus/backend/xla/hlo_writer.h"

namespace gradus::xla {

class HloWriter::Block {
 public:
  explicit Block(HloWriter& writer) : writer_(writer), outer_(writer.constants_) { writer_.indent_ += 2; }
  ~Block() {
    writer_.constants_ = std::move(outer_);
    writer_.indent_ -= 2;
  }
  Block(const Block&) = delete;

 private:
  HloWriter& writer_;
  std::map<std::string, HloValue, std::less<>> outer_;
};

namespace {

std::string types_of(const std::vector<Spec>& specs) {
  std::vector<std::string> types;
  for (const Spec& spec : specs) types.push_back(tensor_type(spec));
  return joined(types);
}
std::vector<Spec> specs_of(const HloValues& values) {
  std::vector<Spec> specs;
  for (const HloValue& v : values) specs.push_back(v.spec);
  return specs;
}
Shape without(const Shape& shape, const Shape& dims) {
  Shape less;
  for (int d = 0; d < shape.rank(); ++d) {
    bool is_gone = false;
    for (const std::int64_t gone : dims) is_gone |= gone == d;
    if (!is_gone) less.push_back(shape[d]);
  }
  return less;
}

}  // namespace

HloValues HloWriter::unpacked(const std::string& name, const std::vector<Spec>& specs) {
  HloValues values;
  for (std::size_t k = 0; k < specs.size(); ++k)
    values.push_back({specs.size() == 1 ? name : text(name, "#", k), {specs[k].dtype, specs[k].shape}});
  return values;
}

std::string HloWriter::bound_return(const HloValues& values) {
  if (values.empty()) return "stablehlo.return";
  return text("stablehlo.return ", names_of(values), " : ", types_of(specs_of(values)));
}

std::string HloWriter::region(const std::vector<Spec>& arguments, const Body& body) {
  std::string outer = std::exchange(text_, {});
  {
    const Block block(*this);
    HloValues in;
    std::vector<std::string> parameters;
    for (const Spec& spec : arguments) {
      in.push_back({fresh(), {spec.dtype, spec.shape}});
      parameters.push_back(in.back().name + ": " + tensor_type(spec));
    }
    if (!in.empty()) line("^bb0(" + joined(parameters) + "):");
    const HloValues results = body(in);
    line(bound_return(results));
  }
  return std::exchange(text_, std::move(outer));
}

std::string HloWriter::combination(DType dtype, const Combine& combine) {
  return region({{dtype, {}}, {dtype, {}}}, [&](const HloValues& in) { return HloValues{combine(in[0], in[1])}; });
}

HloValues HloWriter::generic(std::string_view op, const HloValues& operands, std::string_view properties,
                             const std::vector<std::string>& regions, const std::vector<Spec>& results) {
  const std::string name = fresh();
  std::string head = text(name, results.size() > 1 ? text(":", results.size()) : std::string(), " = \"stablehlo.", op,
                          "\"(", names_of(operands), ")");
  if (!properties.empty()) head += text(" <{", properties, "}>");
  const std::string types = text(" : (", types_of(specs_of(operands)), ") -> ", results.size() == 1 ? "" : "(",
                                 types_of(results), results.size() == 1 ? "" : ")");
  if (regions.empty()) {
    line(head + types);
  } else {
    line(head + " ({");
    for (std::size_t k = 0; k < regions.size(); ++k) {
      if (k) line("}, {");
      text_ += regions[k];
    }
    line("})" + types);
  }
  return unpacked(name, results);
}

HloValue HloWriter::reduce(std::string_view op, const HloValue& x, const HloValue& first, const Shape& dims) {
  return typed(
      "reduce",
      text("(", x.name, " init: ", first.name, ") applies stablehlo.", op, " across dimensions = ", list_of(dims)),
      {x, first}, {x.dtype(), without(x.shape(), dims)});
}

HloValues HloWriter::reduce(const HloValues& x, const HloValues& first, const Shape& dims, const CombineAll& combine) {
  HloValues operands = x;
  operands.insert(operands.end(), first.begin(), first.end());
  std::vector<Spec> arguments = specs_of(first), results;
  arguments.insert(arguments.end(), arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(first.size()));
  for (const HloValue& v : x) results.push_back({v.dtype(), without(v.shape(), dims)});
  const std::string body = region(arguments, [&](const HloValues& in) {
    const auto middle = in.begin() + static_cast<std::ptrdiff_t>(first.size());
    return combine(HloValues(in.begin(), middle), HloValues(middle, in.end()));
  });
  const std::string numbers = list_of(dims);
  return generic("reduce", operands,
                 text("dimensions = array<i64", dims.rank() ? ": " : "", numbers.substr(1, numbers.size() - 2), ">"),
                 {body}, results);
}

HloValues HloWriter::while_loop(const HloValues& first, const Condition& condition, const Body& body) {
  const std::vector<Spec> specs = specs_of(first);
  const std::string holds = region(specs, [&](const HloValues& in) { return HloValues{condition(in)}; });
  const std::string next = region(specs, body);
  return generic("while", first, "", {holds, next}, specs);
}

HloValues HloWriter::for_loop(std::int64_t count, const HloValues& first,
                              const std::function<HloValues(const HloValue& t, const HloValues&)>& body) {
  HloValues start{integer(0)};
  start.insert(start.end(), first.begin(), first.end());
  HloValues last = while_loop(
      start, [&](const HloValues& in) { return compare("LT", in[0], integer(count)); },
      [&](const HloValues& in) {
        HloValues next = body(in[0], HloValues(in.begin() + 1, in.end()));
        next.insert(next.begin(), add(in[0], integer(1)));
        return next;
      });
  last.erase(last.begin());
  return last;
}

HloValues HloWriter::branch(const HloValue& condition, const std::vector<Spec>& specs,
                            const std::function<HloValues()>& if_true, const std::function<HloValues()>& if_false) {
  const HloValue which = typed("convert", condition.name, {condition}, {i32, {}});
  const std::string no = region({}, [&](const HloValues&) { return if_false(); });
  const std::string yes = region({}, [&](const HloValues&) { return if_true(); });
  return generic("case", {which}, "", {no, yes}, specs);
}

}  // namespace gradus::xla
