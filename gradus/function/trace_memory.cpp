/// Keys, occurrences and parameters of a trace that may run again.
#include "gradus/function/trace_memory.h"
#include <cstring>

namespace gradus {
namespace {

std::uint64_t hash_of_contents(const Tensor& x) {
  const auto bytes = x.bytes();
  const auto* data = x.host<char>();
  return mix(hash_of(x.spec()), std::hash<std::string_view>{}({data, bytes}));
}

bool same_contents(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.host(), b.host(), a.bytes()) == 0;
}

}  // namespace

TraceMemory::TraceMemory(std::span<const Spec> arguments, std::uint32_t id) : id_(id) {
  for (const Spec& spec : arguments)
    arguments_.push_back(add_source(spec, {Source::Kind::argument, static_cast<int>(arguments_.size())}));
}

Tensor TraceMemory::add_source(const Spec& spec, Source source) {
  Tensor parameter = Tensor::parameter(spec, id_);
  sources_.emplace(parameter.node().get(), source);
  return parameter;
}

std::size_t TraceMemory::Hash::operator()(const Key& key) const {
  std::uint64_t hash = key.op.hash();
  for (const Node* input : key.inputs) hash = mix(hash, reinterpret_cast<std::uintptr_t>(input));
  return hash;
}

void TraceMemory::start_run() { ++run_; }

Ref<Node>& TraceMemory::place_of(const AnyOp& op, In inputs) {
  Key key{op, {}};
  key.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) key.inputs.push_back(input.node().get());
  Places& places = places_[std::move(key)];
  if (std::exchange(places.run, run_) != run_) places.met = 0;
  if (places.met == places.nodes.size()) places.nodes.emplace_back();
  return places.nodes[places.met++];
}

Tensor TraceMemory::literal(const Tensor& made) {
  const std::uint64_t hash = hash_of_contents(made);
  for (auto [it, last] = literals_.equal_range(hash); it != last; ++it) {
    Literal& known = it->second;
    if (known.run == run_ || !same_contents(known.tensor, made)) continue;
    known.run = run_;
    return known.tensor;
  }
  literals_.emplace(hash, Literal{made, run_});
  return made;
}

TraceMemory::Parameter TraceMemory::parameter_of(const VariableCell& cell) {
  const auto found = cells_.find(cell.id);
  if (found != cells_.end()) return found->second;
  const int index = static_cast<int>(cells_.size());
  Tensor parameter = add_source(cell.spec, {Source::Kind::cell, index});
  return cells_.emplace(cell.id, Parameter{index, std::move(parameter)}).first->second;
}

const Tensor& TraceMemory::call_key() {
  if (!call_key_.defined()) call_key_ = add_source({i64, {}}, {Source::Kind::call_key});
  return call_key_;
}

Source TraceMemory::source_of(const Node& node) const {
  const auto found = sources_.find(&node);
  return found == sources_.end() ? Source{} : found->second;
}

std::unordered_map<const Node*, std::uint32_t> TraceMemory::uses() const {
  std::unordered_map<const Node*, std::uint32_t> uses;
  for (const auto& [key, places] : places_)
    for (const Ref<Node>& node : places.nodes)
      if (node)
        for (const Ref<Node>& operand : node->inputs) ++uses[operand.get()];
  return uses;
}

std::size_t TraceMemory::bytes() const {
  constexpr std::size_t entry_bytes = sizeof(Node) + sizeof(Key) + sizeof(Places) + 64;
  std::size_t bytes = places_.size() * entry_bytes;
  for (const auto& [hash, literal] : literals_) bytes += literal.tensor.bytes();
  return bytes;
}

}  // namespace gradus
