/// Tensor's own members that need no op, and the one door through which nodes are made.
#include "gradus/graph/tensor.h"
#include <algorithm>
#include "gradus/graph/context.h"
#include "gradus/graph/copy.h"
#include "gradus/graph/known_value.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/trace_names.h"
#include "gradus/graph/unknown_value.h"

namespace gradus {

void Tensor::fail_empty() {
  throw InvalidArgument(
      "this tensor is empty: it was default-constructed or moved from; assign a value before using it");
}

Tensor Tensor::of_buffer(const Spec& spec, Ref<Buffer> value) {
  auto node = Ref<Node>::of_new(new Node);
  node->spec = spec;
  node->value.set(std::move(value));
  return Tensor(std::move(node));
}

Tensor Tensor::parameter(const Spec& spec, std::uint32_t trace) {
  auto node = Ref<Node>::of_new(new Node);
  node->spec = spec;
  node->trace = trace;
  return Tensor(std::move(node));
}

std::size_t Tensor::bytes() const { return static_cast<std::size_t>(bytes_of(spec())); }
Device Tensor::device() const { return spec().device.physical(); }

Buffer& Tensor::observed() const {
  const Spec& known = spec();
  if (!node_->value) {
    if (node_->trace) {
      if (!Context::is_active(node_->trace))
        throw InvalidArgument(text("this tensor, ", known, origin_of(*node_),
                                   "; return it from the function or assign it to a Variable"));
      require<detail::UnknownValue>(
          compute_known(*node_), "the value of ", known,
          " is not known while its function is traced, since it does not follow from constants alone; return the "
          "tensor and look at it outside");
    } else {
      LazyEvaluation::observe(*node_);
    }
  }
  return *node_->value.get();
}

Ref<Buffer> Tensor::host_buffer() const { return Buffer::on_host(Ref<Buffer>(&observed())); }

void Tensor::check_element(DType asked) const {
  require(asked == dtype(), "asked for elements of type ", asked, " of a tensor ", spec(), "; cast it first");
}

double Tensor::item() const {
  require(spec().shape.size() == 1, "item: expected a single element, got ", spec(), "; use to_vector()");
  const void* data = host();
  return with_type(dtype(), [&]<class T>(T) { return static_cast<double>(*static_cast<const T*>(data)); });
}

Tensor::operator bool() const {
  require(spec().shape.size() == 1 && dtype() == boolean, "if (tensor): expected one bool, got ", spec(),
          "; compare it, or reduce with reduce_all or reduce_any; elementwise, a && b is a & b, a || b is a | b");
  if (is_symbolic() && !is_known(*this))
    if (Context* context = Context::find(node_->trace)) return context->decide(*this);
  return *host<bool>();
}

namespace {

void check_traces(const AnyOp& op, In inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (Context::is_active(inputs[i].node()->trace)) [[likely]]
      continue;
    throw InvalidArgument(text(op->name, ": operand ", i, ", ", inputs[i].spec(), origin_of(*inputs[i].node()),
                               "; return it from the function or assign it to a Variable"));
  }
}

[[noreturn]] void fail_devices(const AnyOp& op, Placement a, Placement b) {
  throw InvalidArgument(text(op->name, ": operands are on two devices, ", a.device(), " and ", b.device(),
                             "; copy one of them by .to(", a.device(), "), or compute within a DeviceScope"));
}

/// The device that the operands name; none if none does.
Placement device_of(const AnyOp& op, In inputs) {
  Placement found;
  for (const Tensor& input : inputs) {
    const Placement device = input.spec().device;
    if (!device.is_named() || device == found) continue;
    if (found.is_named()) fail_devices(op, found, device);
    found = device;
  }
  return found;
}

/// True if it is computed from numbers alone, and so is anywhere: in a trace, whose program makes it where it is read.
/// Deep ones are not searched: they are copied.
bool is_anywhere(const Node& node, int depth = 4) {
  return node.trace && node.op && depth > 0 &&
         std::ranges::all_of(node.inputs, [&](const Ref<Node>& operand) { return is_anywhere(*operand, depth - 1); });
}

/// The operands on `device`: copies of those elsewhere. Nothing if all are on it.
Tensors brought_to(Placement device, In inputs) {
  const auto is_elsewhere = [&](const Tensor& input) {
    const Placement now = input.spec().device;
    return now.resolved() != device && (now.is_named() || !is_anywhere(*input.node()));
  };
  if (std::ranges::none_of(inputs, is_elsewhere)) return {};
  Tensors there(inputs.begin(), inputs.end());
  for (Tensor& input : there)
    if (is_elsewhere(input)) input = copy_to(input, device);
  return there;
}

Ref<Node> applied(AnyOp op, In inputs) {
  const Spec* few[4];
  std::vector<const Spec*> many(inputs.size() > std::size(few) ? inputs.size() : 0);
  const Spec** const specs = many.empty() ? few : many.data();
  for (std::size_t i = 0; i < inputs.size(); ++i) specs[i] = &inputs[i].spec();
  return Ref<Node>::of_new(new Node(std::move(op), Specs(std::span<const Spec* const>(specs, inputs.size())), inputs));
}

Tensor placed_node(AnyOp op, In inputs, Placement device) {
  // A node made within a trace belongs to it, whatever it depends on: it is part of that program, not computed now nor
  // by a program around it.
  Context* const context = Context::current();
  Ref<Node>* place = context ? context->place_of(op, inputs) : nullptr;
  if (place && *place) {
    renumber(**place);
    (*place)->scope = current_scope();
    return Tensor(*place);
  }
  Ref<Node> node = applied(std::move(op), inputs);
  node->spec.device = device;
  node->scope = current_scope();
  if (SequenceMask::is_used()) [[unlikely]]
    SequenceMask::made(node, inputs);
  if (context) {
    node->trace = context->id();
    const bool any = std::ranges::any_of(inputs, [](const Tensor& input) { return input.node()->varies; });
    node->varies = node->op.varies(any);
  } else {
    LazyEvaluation::recorded(node);
  }
  if (place) *place = node;
  return Tensor(std::move(node));
}

}  // namespace

Tensor detail::make_node(AnyOp op, In inputs) {
  check_traces(op, inputs);
  if (op.is_copy()) {
    const Placement target = op.copies_to();
    return placed_node(std::move(op), inputs, target);
  }
  // Without devices this costs a look at a byte of each operand.
  Placement device = DeviceScope::current();
  if (!device.is_named()) device = device_of(op, inputs);
  if (!device.is_named()) return placed_node(std::move(op), inputs, device);
  const Tensors there = brought_to(device, inputs);
  return placed_node(std::move(op), there.empty() ? inputs : In(there), device);
}

}  // namespace gradus
