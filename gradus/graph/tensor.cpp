/// Tensor's own members that need no op, and the one door through which nodes are made.
#include "gradus/graph/tensor.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"

namespace gradus {

void (*Evaluation::observe)(Node&) = nullptr;
void (*Evaluation::recorded)(const Ref<Node>&) = nullptr;
void (*Evaluation::forget)(Node&) = nullptr;
void (*Evaluation::start_recording)() = nullptr;
void (*Evaluation::stop_recording)() = nullptr;

void Tensor::fail_empty() {
  throw InvalidArgument(
      "this tensor is empty: it was default-constructed or moved from; assign a value before using it");
}

Tensor Tensor::of_buffer(const Spec& spec, Ref<Buffer> value) {
  Ref<Node> node(new_node());
  node->spec = spec;
  node->value.set(std::move(value));
  return Tensor(std::move(node));
}

Tensor Tensor::parameter(const Spec& spec, std::uint32_t trace) {
  Ref<Node> node(new_node());
  node->spec = spec;
  node->trace = trace;
  return Tensor(std::move(node));
}

std::size_t Tensor::bytes() const { return static_cast<std::size_t>(bytes_of(spec())); }
Device Tensor::device() const {
  spec();
  return cpu();
}

Buffer& Tensor::observed() const {
  const Spec& known = spec();
  if (!node_->value) {
    if (node_->trace) {
      require(Context::is_active(node_->trace), "this tensor, ", known,
              ", is symbolic: it was made while a function was traced, and that call is over; return it from the "
              "function or assign it to a Variable");
      throw InvalidArgument(
          text("the value of ", known,
               " is not known while its function is traced; return the tensor and look at it outside"));
    }
    Evaluation::observe(*node_);
  }
  return *node_->value.get();
}

void Tensor::check_element(DType asked) const {
  require(asked == dtype(), "asked for elements of type ", asked, " of a tensor ", spec(), "; cast it first");
}

double Tensor::item() const {
  require(spec().shape.size() == 1, "item: expected a single element, got ", spec(), "; use to_vector()");
  const void* data = observed().data();
  return with_type(dtype(), [&]<class T>(T) { return static_cast<double>(*static_cast<const T*>(data)); });
}

Tensor::operator bool() const {
  require(spec().shape.size() == 1 && dtype() == boolean, "if (tensor): expected one bool, got ", spec(),
          "; compare it, or reduce with reduce_all or reduce_any");
  require(
      !is_symbolic() || !Context::is_active(node_->trace), "if (tensor): ", spec(),
      " is symbolic, so a C++ branch on it cannot be taken while a function is traced; use where(condition, a, b), or "
      "decide outside the function");
  return *observed().data<bool>();
}

Tensor make_node(AnyOp op, In inputs) {
  Ref<Node> node(new_node());
  Spec few[4];
  std::vector<Spec> many(inputs.size() > 4 ? inputs.size() : 0);
  Spec* specs = many.empty() ? few : many.data();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    specs[i] = inputs[i].spec();
    const std::uint32_t trace = inputs[i].node()->trace;
    if (trace > node->trace) node->trace = trace;
    require(
        !trace || Context::is_active(trace), op->name, ": operand ", i, ", ", specs[i],
        ", is symbolic: it was made while a function was traced, and that call is over; return it from the function or "
        "assign it to a Variable");
  }
  node->spec = op.infer({specs, inputs.size()});
  node->op = std::move(op);
  node->inputs = Inputs(inputs);
  node->scope = current_scope();
  if (!node->trace) {
    // Within a trace, what depends on no symbol joins the trace too: it is part of the program, not computed now.
    if (const Context* context = Context::current()) node->trace = context->id();
    else Evaluation::recorded(node);
  }
  return Tensor(std::move(node));
}

}  // namespace gradus
