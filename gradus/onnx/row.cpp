#include "gradus/onnx/row.h"
#include <algorithm>
#include <map>
#include "gradus/graph/context.h"
#include "gradus/onnx/host_values.h"
#include "gradus/onnx/scope.h"
#include "gradus/ops/widened.h"

namespace gradus::onnx {
namespace {

using Key = std::pair<std::string_view, std::string_view>;
std::map<Key, const Row*>& rows() {
  static std::map<Key, const Row*> all;
  return all;
}

}  // namespace

Table::Table(std::initializer_list<Row> rows_of_family) : rows_(rows_of_family) {
  for (const Row& row : rows_)
    internal_check(rows().emplace(Key{row.domain, row.op}, &row).second, "two rows of the ONNX op ", row.op);
}

const Row* find_row(std::string_view domain, std::string_view op) {
  const auto found = rows().find({domain, op});
  return found == rows().end() ? nullptr : found->second;
}

std::vector<const Row*> all_rows() {
  std::vector<const Row*> all;
  for (const auto& [key, row] : rows()) all.push_back(row);
  return all;
}

// ---------------------------------------------------------------- narrow floats

Tensor wide(const Tensor& x) {
  if (x.is_symbolic()) return widened(x);
  const Untraced outside;  // values known on the host stay so
  return widened(x);
}

RowFunction rounded_once(RowFunction run, std::vector<int> like) {
  internal_check(!like.empty(), "rounded_once needs to know the dtype of the first result");
  return [run = std::move(run), like = std::move(like)](const Call& c) {
    Tensors inputs = c.all_inputs();
    bool any = false;
    for (int i = 0; i < c.inputs(); ++i) {
      if (!c.has(i) || !is_narrow(c[i].dtype()) || std::ranges::count(c.node().row->steering, i)) continue;
      inputs[static_cast<std::size_t>(i)] = wide(c[i]);
      any = true;
    }
    if (!any) return run(c);
    Results results = run(Call(c.node(), std::move(inputs), c.scope()));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const int input = like[std::min(k, like.size() - 1)];
      if (input != as_computed && results[k].defined() && is_floating(results[k].dtype()))
        results[k] = cast(results[k], c[c.has(input) ? input : 0].dtype());
    }
    return results;
  };
}

// ---------------------------------------------------------------- inputs

bool Call::has(int input) const {
  return input >= 0 && input < inputs() && inputs_[static_cast<std::size_t>(input)].defined();
}

const Tensor& Call::operator[](int input) const {
  require(has(input), "input ", input, " is missing");
  return inputs_[static_cast<std::size_t>(input)];
}

std::vector<std::int64_t> Call::integers_of(int input) const {
  return host_integers((*this)[input], text("input ", input));
}
std::int64_t Call::integer_of(int input) const {
  const std::vector<std::int64_t> all = integers_of(input);
  require(all.size() == 1, "input ", input, " must be one number, it has ", all.size());
  return all.front();
}
std::vector<double> Call::numbers_of(int input) const { return host_numbers((*this)[input], text("input ", input)); }
double Call::number_of(int input) const {
  const std::vector<double> all = numbers_of(input);
  require(all.size() == 1, "input ", input, " must be one number, it has ", all.size());
  return all.front();
}
Shape Call::shape_of(int input) const { return host_shape((*this)[input], text("input ", input)); }

// ---------------------------------------------------------------- attributes

const Attribute* Call::find(std::string_view name, Attribute::Kind kind) const {
  for (const Attribute& a : node_.attributes) {
    if (a.name != name) continue;
    const bool empty_list =
        a.kind == Attribute::Kind::integers && a.integers.empty();  // of which the type was left out
    require(a.kind == kind || empty_list, "attribute `", name, "` is ", name_of(a.kind), ", it must be ",
            name_of(kind));
    return &a;
  }
  return nullptr;
}
const Attribute& Call::get(std::string_view name, Attribute::Kind kind) const {
  const Attribute* found = find(name, kind);
  require(found, "attribute `", name, "` is missing; it must be ", name_of(kind));
  return *found;
}

bool Call::has_attribute(std::string_view name) const {
  for (const Attribute& a : node_.attributes)
    if (a.name == name) return true;
  return false;
}
std::int64_t Call::integer(std::string_view name) const { return get(name, Attribute::Kind::integer).integer; }
std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::integer);
  return found ? found->integer : otherwise;
}
double Call::number(std::string_view name) const { return get(name, Attribute::Kind::number).number; }
double Call::number(std::string_view name, double otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::number);
  return found ? found->number : otherwise;
}
std::string Call::word(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::word);
  return found ? found->word : std::string(otherwise);
}
std::vector<std::int64_t> Call::integers(std::string_view name) const {
  return get(name, Attribute::Kind::integers).integers;
}
std::vector<std::int64_t> Call::integers(std::string_view name, std::vector<std::int64_t> otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::integers);
  return found ? found->integers : std::move(otherwise);
}
std::vector<double> Call::numbers(std::string_view name, std::vector<double> otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::numbers);
  return found ? found->numbers : std::move(otherwise);
}
std::vector<std::string> Call::words(std::string_view name, std::vector<std::string> otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::words);
  return found ? found->words : std::move(otherwise);
}
const Tensor& Call::tensor(std::string_view name) const { return get(name, Attribute::Kind::tensor).tensor; }
const GraphDefinition& Call::graph(std::string_view name) const { return *get(name, Attribute::Kind::graph).graph; }
DType Call::dtype(std::string_view name, DType otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::integer);
  return found ? dtype_of_code(found->integer) : otherwise;
}

std::optional<std::vector<std::int64_t>> Call::integers_of(int input, std::string_view attribute) const {
  if (has(input)) return integers_of(input);
  if (has_attribute(attribute)) return integers(attribute);
  return {};
}

int Call::axis(std::int64_t given, int rank) const {
  require(given >= -rank && given < rank, "axis ", given, " does not exist in ", rank, " dimensions");
  return static_cast<int>(given < 0 ? given + rank : given);
}
std::vector<int> Call::axes(const std::vector<std::int64_t>& given, int rank) const {
  std::vector<int> all;
  for (const std::int64_t each : given) all.push_back(axis(each, rank));
  return all;
}

Tensors Call::run(const GraphDefinition& body, In inputs) const { return run_graph(body, inputs, &scope_); }

}  // namespace gradus::onnx
