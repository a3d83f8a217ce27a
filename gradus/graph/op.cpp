/// The table of op records, the registry by name, and the rules that every op of a kind shares.
#include "gradus/graph/op.h"
#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <unordered_map>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"

namespace gradus {
namespace {

struct Records {
  std::mutex guard;
  std::unordered_multimap<std::uint64_t, std::unique_ptr<OpRecord>> entries;
  std::size_t sweep_at = 4096;

  /// Drops records without holders. Under the lock no holder can appear: only find() hands out records.
  void sweep() {
    std::erase_if(entries, [](const auto& entry) {
      const OpRecord& record = *entry.second;
      if (record.refs.load(std::memory_order_acquire) != 0) return false;
      record.type->destroy(record.attributes);
      return true;
    });
    sweep_at = std::max<std::size_t>(4096, 2 * entries.size());
  }
};
Records& records() {
  static auto* only = new Records;  // ops may be held by static objects
  return *only;
}

std::map<std::string_view, const OpType*>& registry() {
  static auto* only = new std::map<std::string_view, const OpType*>;
  return *only;
}

std::string_view allowed(Takes set) {
  switch (set) {
    case Takes::floats: return "a floating type";
    case Takes::integers: return "an integer type";
    case Takes::booleans: return "bool";
    case Takes::numbers: return "a number type";
    case Takes::discrete: return "an integer type or bool";
    case Takes::anything: break;
  }
  return "any type";
}

void check_dtype(std::string_view name, Takes accepted, const Spec& spec) {
  require(takes(accepted, spec.dtype), name, ": expected ", allowed(accepted), ", got ", spec,
          spec.dtype == boolean || accepted == Takes::booleans ? "" : "; cast it first");
}

}  // namespace

AnyOp OpTable::find(const OpType& type, const void* op, std::uint64_t hash, Same same, Clone clone) {
  Records& table = records();
  std::lock_guard lock(table.guard);
  for (auto [it, last] = table.entries.equal_range(hash); it != last; ++it)
    if (it->second->type == &type && same(it->second->attributes, op)) return AnyOp(it->second.get());
  if (table.entries.size() >= table.sweep_at) table.sweep();
  auto record = std::make_unique<OpRecord>();
  record->type = &type;
  record->attributes = clone(op);
  record->hash = hash;
  return AnyOp(table.entries.emplace(hash, std::move(record))->second.get());
}

std::size_t OpTable::size() {
  std::lock_guard lock(records().guard);
  records().sweep();
  return records().entries.size();
}

void OpTable::enroll(const OpType& type) {
  const auto [it, fresh] = registry().try_emplace(type.name, &type);
  internal_check(fresh || it->second == &type, "two ops are named ", type.name);
}

const std::map<std::string_view, const OpType*>& detail::registered_ops() { return registry(); }

AnyOp detail::parse_op(std::string_view name, std::string_view attributes) {
  const auto found = registry().find(name);
  require(found != registry().end(), "graph text: there is no op `", name, "`");
  require(!found->second->composite, "graph text: `", name, "` is made of other ops and never stands in a graph");
  return found->second->parse(attributes);
}

Spec AnyOp::infer(Specs in) const {
  if (record_->type->arity >= 0)
    require(static_cast<int>(in.size()) == record_->type->arity, record_->type->name, ": expected ",
            record_->type->arity, " operands, got ", in.size());
  return record_->type->infer(record_->attributes, in);
}

std::vector<const Region*> AnyOp::regions() const {
  return record_ && record_->type->regions ? record_->type->regions(record_->attributes) : std::vector<const Region*>{};
}

bool AnyOp::may_fail() const {
  if (!record_) return false;
  return record_->type->may_fail ||
         std::ranges::any_of(regions(), [](const Region* region) { return region->may_fail(); });
}

scalar::Code AnyOp::formula(std::span<const DType> inputs) const {
  scalar::Code code;
  std::vector<scalar::Value> in;
  bool narrow = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const scalar::Value x(&code, code.add({.op = scalar::Opcode::input, .type = inputs[i], .a = static_cast<int>(i)}));
    in.push_back(scalar::convert(x, computed_in(inputs[i])));
    narrow |= is_narrow(inputs[i]);
  }
  scalar::Value result = record_->type->emit(record_->attributes, in);
  if (narrow) {
    std::vector<Spec> specs;
    for (DType t : inputs) specs.push_back({t, {}});
    result = scalar::convert(result, record_->type->result(record_->attributes, specs));
  }
  code.result = result.id();
  return code;
}

scalar::Code AnyOp::combination(DType t) const {
  scalar::Code code;
  t = computed_in(t);
  const scalar::Value sum(&code, code.add({.op = scalar::Opcode::input, .type = t, .a = 0}));
  const scalar::Value x(&code, code.add({.op = scalar::Opcode::input, .type = t, .a = 1}));
  code.result = record_->type->combine(record_->attributes, sum, x).id();
  return code;
}

scalar::Code AnyOp::index_formula() const {
  scalar::Code code;
  const scalar::Value index(&code, code.add({.op = scalar::Opcode::input, .type = i64, .a = 0}));
  code.result = record_->type->emit_index(record_->attributes, index).id();
  return code;
}

namespace detail::inline rooms {
std::ostream& operator<<(std::ostream& out, const AnyOp& op) {
  out << op->name;
  if (op->print) op->print(op.attributes(), out);
  return out;
}
}  // namespace detail::inline rooms

namespace detail {

namespace {

/// True if operand 0 chooses between the others: where(condition, a, b).
bool chooses(Specs in) { return in.size() == 3 && in[0].dtype == boolean; }

bool fit(Takes accepted, Specs in) {
  const DType t = in.back().dtype;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i].shape != in[0].shape || !takes(accepted, in[i].dtype) || (in[i].dtype != t && (i > 0 || !chooses(in))))
      return false;
  return true;
}

[[noreturn, gnu::noinline]] void explain_misfit(std::string_view name, Takes accepted, Specs in) {
  for (const Spec& s : in)
    require(s.shape == in[0].shape, name, ": operands have different shapes ", in[0].shape, " and ", s.shape);
  for (const Spec& s : in) check_dtype(name, accepted, s);
  std::size_t other = chooses(in) ? 1 : 0;
  while (in[other].dtype == in.back().dtype) ++other;
  throw InvalidArgument(
      text(name, ": operands have different dtypes ", in[other], " and ", in.back(), "; cast one of them"));
}

}  // namespace

Spec infer_elementwise(std::string_view name, Takes accepted, DType result, Specs in) {
  if (!fit(accepted, in)) [[unlikely]]
    explain_misfit(name, accepted, in);
  return {result, in[0].shape};
}

Spec infer_reduction(std::string_view name, Takes accepted, int axis, Specs in) {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  check_dtype(name, accepted, in[0]);
  require<OutOfRange>(axis < 0 && axis >= -in[0].shape.rank(), name, ": axis ", axis, " is out of range for ", in[0]);
  Spec out = in[0];
  out.shape.set(axis, 1);
  return out;
}

void print_field(std::ostream& out, bool value) { out << (value ? "true" : "false"); }
void print_field(std::ostream& out, std::int64_t value) { out << dimension::to_text(value); }
void print_field(std::ostream& out, int value) { out << std::to_string(value); }
void print_field(std::ostream& out, DType value) { out << value; }
void print_field(std::ostream& out, Placement value) {
  if (value.is_named()) out << value.device();
  else out << "none";
}
void print_field(std::ostream& out, const Shape& value) { out << brackets(value); }
void print_field(std::ostream& out, double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;  // the shortest that parses back
  out << std::string_view(digits, static_cast<std::size_t>(end - digits));
}
void print_field(std::ostream& out, const scalar::Literal& value) {
  if (value.is_integral()) {
    if (value.is_huge()) out << std::to_string(value.bits_as(u64));
    else out << std::to_string(std::bit_cast<std::int64_t>(value.bits_as(i64)));
    return;
  }
  TextStream written;
  print_field(written, value.real());
  const std::string digits = written.str();
  out << digits << (digits.find_first_of(".en") == std::string::npos ? ".0" : "");
}

namespace {
template <class T> void parse_number(std::string_view written, T& value) {
  const HostFloats floats;  // from_chars rounds as the caller does
  const auto [end, problem] = std::from_chars(written.data(), written.data() + written.size(), value);
  require(problem == std::errc() && end == written.data() + written.size(), "graph text: `", written,
          "` is not a number that fits");
}
}  // namespace

void parse_field(std::string_view written, bool& value) {
  require(written == "true" || written == "false", "graph text: `", written, "` is neither true nor false");
  value = written == "true";
}
void parse_field(std::string_view written, std::int64_t& value) { value = dimension::from_text(written); }
void parse_field(std::string_view written, int& value) { parse_number(written, value); }
void parse_field(std::string_view written, double& value) { parse_number(written, value); }
void parse_field(std::string_view written, Shape& value) { value = shape_from_brackets(written); }
void parse_field(std::string_view written, Placement& value) {
  value = written == "none" ? Placement() : Placement(device_from_text(written));
}
void parse_field(std::string_view written, DType& value) {
  for (DType t : all_dtypes)
    if (name_of(t) == written) {
      value = t;
      return;
    }
  throw InvalidArgument(text("graph text: `", written, "` is not a dtype"));
}
void parse_field(std::string_view written, scalar::Literal& value) {
  if (written.find_first_of(".en") != std::string_view::npos) {
    double number = 0;
    parse_number(written, number);
    value = scalar::Literal(number);
    return;
  }
  std::int64_t number = 0;
  if (std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc::result_out_of_range &&
      !written.starts_with('-')) {
    std::uint64_t huge = 0;
    parse_number(written, huge);
    value = scalar::Literal(huge);
    return;
  }
  parse_number(written, number);
  value = scalar::Literal(number);
}

std::uint64_t hash_field(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t hash_field(const scalar::Literal& value) {
  return value.is_integral() ? value.bits_as(i64) : hash_field(value.real());
}

std::size_t find_outside_braces(std::string_view text, char wanted) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text[i] == wanted) return i;
    if (text[i] == '{') ++depth;
    if (text[i] == '}') --depth;
  }
  return text.size();
}

std::string_view attribute_text(std::string_view op, std::string_view attributes, std::string_view name) {
  while (!attributes.empty()) {
    const std::size_t end = find_outside_braces(attributes, ';');
    const std::string_view field = attributes.substr(0, end);
    const std::size_t equals = field.find('=');
    if (equals != std::string_view::npos && field.substr(0, equals) == name) return field.substr(equals + 1);
    attributes.remove_prefix(end);
    attributes.remove_prefix(std::min(attributes.find_first_not_of("; "), attributes.size()));
  }
  throw InvalidArgument(text("graph text: op `", op, "` lacks its attribute `", name, "`"));
}

void check_attribute_count(std::string_view op, std::string_view attributes, int count) {
  int given = attributes.empty() ? 0 : 1;
  for (std::string_view rest = attributes;;) {
    const std::size_t end = find_outside_braces(rest, ';');
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
    ++given;
  }
  require(given == count, "graph text: op `", op, "` has ", count, " attributes, got ", given, " in {", attributes,
          "}");
}

}  // namespace detail
}  // namespace gradus
