/// function(f): traces f once per signature, compiles forward, backward and updates into one program, and runs that.
///
/// Arguments: Tensors and the values of Variables are traced. Floating numbers become scalar tensors, so that a new
/// value is no retrace; f has to take a Tensor there, since a double would need a program for each value. Integers,
/// bools and enums are static: one variant per value. Arrays, pairs, tuples, vectors, maps by std::string and plain
/// structs of these are arguments and results, too. The length of a vector and the keys of a map are static. Fields of
/// a struct keep their types, so a struct with a floating number or a Variable is refused. The training mode is part of
/// the signature. A C++ `if (bool tensor)` becomes a guard: the path taken is compiled; another path is traced when a
/// call first takes it; all stay cached. Variables are assigned after the path of a call is known. All other C++ state
/// read while tracing is frozen in that path. After a Variable is destroyed, functions that used it are traced again. A
/// closure must capture models and optimizers by reference. InvalidArgument: a Variable that is made and destroyed
/// while tracing, as those of a model that the C++ copies are, and a field of a model that the C++ itself changes.
/// Called under a tape, or inside another trace, a function is traced along: its ops become part of that.
///
/// A size that varied between calls is a symbol in the next trace: to C++ a negative number, which ops understand. C++
/// that counts, branches or computes with it makes another program for each size. So at each new size the C++ runs once
/// more, with the number, and its program is compared with that of the symbol. If they differ, the size is fixed: one
/// variant for each, which explain() reports; for a size that is declared any_size it is an InvalidArgument. An op that
/// has to know a size fixes it, too, under any_size as well, and explain() has the op's message. To compute with a
/// size, write extent(x.shape()[0], dtype); to loop over it, scan. Side effects of the C++ happen at each of these
/// runs.
///
/// While it is traced C++ rounds to nearest and no exception of floating point traps, whatever the caller has set. A
/// function may call itself only if the recursion ends while it is traced, such as over an integer argument: else
/// InvalidArgument.
///
/// ResourceExhausted: more than max_variants signatures, more than 64 paths in one of them, or more than 128 branches
/// on one path. Use cond, while_loop and scan there.
#pragma once
#include "gradus/function/arguments.h"
#include "gradus/function/traced_function.h"

namespace gradus {

namespace detail {

/// The result of f(arguments), with the tensors in them taken from `in`. `finish` may change it.
template <class F, class... A>
Called called_with(F& f, [[maybe_unused]] In in, const auto& finish, const A&... arguments) {
  [[maybe_unused]] std::size_t next = 0;
  // Braces fix the order of evaluation: arguments take their tensors from left to right.
  std::tuple<traced_t<A>...> traced{rebuild_argument(arguments, in, next)...};
  if constexpr (std::is_void_v<std::invoke_result_t<F&, traced_t<A>...>>) {
    std::apply(f, std::move(traced));
    return {};
  } else {
    auto result = std::apply(f, std::move(traced));
    finish(result);
    Tensors tensors;
    visit_result(result, [&](Tensor& part) { tensors.push_back(std::exchange(part, {})); });
    std::string lengths;
    add_open_structure(result, lengths);
    return {std::move(tensors), std::make_shared<const decltype(result)>(std::move(result)), std::move(lengths)};
  }
}

}  // namespace detail

/// A compiled function; made by function(). Copies share its compiled variants.
template <class F> class Function {
 public:
  Function(F f, FunctionOptions options) : core_(std::make_shared<Core>(std::move(f), std::move(options))) {}

  /// Calls it: traces and compiles if no variant fits, then runs the program. The result has the type that f gives.
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::right)
  auto operator()(const A&... arguments) const -> std::invoke_result_t<const F&, detail::traced_t<A>...>;

  // Mistakes: compilers quote the line.
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::text)
  void operator()(const A&...) const = delete;  // texts are no arguments: take an enum, or capture the text
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::number)
  void operator()(const A&...) const = delete;  // a floating number is a scalar Tensor within: take a Tensor
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::reference)
  void operator()(const A&...) const = delete;  // a Variable is its value within: take a Tensor, or capture it
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::mutable_closure)
  void operator()(const A&...) const = delete;  // the state of a mutable lambda would be frozen: use a Variable
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::kind)
  void operator()(const A&...) const = delete;  // Tensors, numbers, enums, vectors and structs of them; capture others
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::field)
  void operator()(const A&...) const = delete;  // floating numbers and Variables in a struct: make the field a Tensor
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::arguments)
  void operator()(const A&...) const = delete;  // the function that was given takes other arguments
  template <class... A>
    requires(detail::kind_of_call<F, A...>() == detail::CallKind::result)
  void operator()(const A&...) const = delete;  // it gives Tensors, Loss, Gradients, vectors or structs of them
  /// Writes the step for arguments of these specs, which may be left out where input_signature fixes all sizes, as an
  /// object file and a header: `stem`.o and `stem`.h, whose functions are named after the last part of `stem`, NAME. A
  /// program in C that links the object needs nothing else. Arguments are Tensors; a last one that is a std::vector of
  /// them takes all remaining specs. The Variables and the random state, which the step reads and assigns, are a struct
  /// that the program owns; NAME_init fills it with their present values. A first result that is one float, as a Loss
  /// is, is returned; other results are written through pointers. Steps have the bits that the library computes on one
  /// thread. InvalidArgument: open sizes, a C++ branch on a value, an op that cannot be exported, which is named.
  /// ResourceExhausted: a captured tensor of more than 64 MiB. Unavailable: a path that cannot be written, where no
  /// file is left; a machine without binutils.
  ObjectFiles export_object(const std::filesystem::path& stem, std::vector<Spec> specs = {},
                            ObjectOptions options = {}) const;

  /// For export_objects, which has several steps in one object.
  std::shared_ptr<const detail::TracedStep> trace_step(const std::vector<Spec>& specs) const;

  /// The step for arguments of these specs as text for accelerators: StableHLO, which compilers of XLA take. Variables
  /// and the random state, which it reads and assigns, are further arguments and results; comments at its head name
  /// them. The same step gives the same text. Errors as export_object's; Unavailable for an op that has no such form,
  /// which is named with its dtype.
  std::string stablehlo(std::vector<Spec> specs = {}) const;
  /// Writes stablehlo(specs) into `file`, which appears whole or not at all.
  void export_stablehlo(const std::filesystem::path& file, std::vector<Spec> specs = {}) const;

  /// A report: kernels, memory, variants, and the reasons of retraces.
  Explanation explain() const { return core().traced.explain(); }

  // For the rooms of the library.
  /// Lives as long as any copy of this function.
  std::shared_ptr<const void> identity() const { return core_; }
  const FunctionOptions& options() const { return core().options; }

 private:
  struct Core {
    Core(F f, FunctionOptions o) : f(std::move(f)), options(std::move(o)), traced(options, &this->f, sizeof(F)) {}
    F f;
    const FunctionOptions options;
    detail::TracedFunction traced;
  };
  /// Calls use(body, specs) with the step as a function of as many tensors as there are specs. `what` opens errors.
  template <class Use> auto with_body(std::string_view what, std::vector<Spec> specs, const Use& use) const;
  Core& core() const {
    require(static_cast<bool>(core_), "function: this function is empty: it was moved from; call the one that it was ",
            "moved to, or assign a function to it first");
    return *core_;
  }
  std::shared_ptr<Core> core_;
};

/// f as a compiled function.
template <class F> Function<F> function(F f, FunctionOptions options = {}) {
  return {std::move(f), std::move(options)};
}

namespace detail {

template <std::size_t> using TensorFor = Tensor;
/// True if F takes one tensor per index.
template <class F, std::size_t... i> constexpr bool takes_tensors(std::index_sequence<i...>) {
  return std::invocable<const F&, TensorFor<i>...>;
}
/// True if F takes one tensor per index, and then a vector of more. A generic lambda is not asked: its body may not
/// compile for a vector.
template <class F, std::size_t... i> constexpr bool takes_rest(std::index_sequence<i...>) {
  if constexpr (requires { &F::operator(); }) return std::invocable<const F&, TensorFor<i>..., Tensors>;
  else return false;
}
constexpr std::size_t most_exported_arguments = 12;
/// For 0, 1, 2 ... tensors: true if F takes this many.
template <class F, std::size_t... n> std::vector<bool> numbers_taken_by(std::index_sequence<n...>) {
  return {takes_tensors<F>(std::make_index_sequence<n>())...};
}
/// Throws InvalidArgument for a step that is exported with `given` specs, a number that it does not take.
[[noreturn]] void refuse_specs(std::string_view what, std::size_t given, const std::vector<bool>& taken);

/// The result of f(arguments) as tensors: of a Loss its value, of others every tensor.
template <class F, class... A> Called called_for_export(const F& f, A... arguments) {
  using Result = std::invoke_result_t<const F&, A...>;
  Called called;
  if constexpr (std::is_void_v<Result>) {
    f(std::move(arguments)...);
  } else {
    static_assert(FunctionResult<Result>,
                  "export_object: the step gives Tensors, Loss, Gradients, vectors or structs "
                  "of them");
    Result result = f(std::move(arguments)...);
    add_exported(result, called.tensors);
  }
  return called;
}
/// f(in[0], in[1], ...); one that takes a vector after i tensors gets all others in it.
template <class F, std::size_t... i> Called called_with_tensors(const F& f, In in, std::index_sequence<i...> first) {
  if constexpr (takes_tensors<F>(first)) return called_for_export(f, Tensor(in[i])...);
  else return called_for_export(f, Tensor(in[i])..., Tensors(in.begin() + sizeof...(i), in.end()));
}

}  // namespace detail

template <class F>
template <class Use>
auto Function<F>::with_body(std::string_view what, std::vector<Spec> specs, const Use& use) const {
  Core& core = this->core();
  if (specs.empty()) specs = core.options.input_signature;
  using Result = decltype(use(std::declval<const detail::Body&>(), specs));
  const auto with = [&]<std::size_t n>(auto self, std::integral_constant<std::size_t, n>) -> Result {
    if constexpr (n > detail::most_exported_arguments) {
      detail::refuse_specs(what, specs.size(), detail::numbers_taken_by<F>(std::make_index_sequence<n>()));
    } else {
      constexpr auto first = std::make_index_sequence<n>();
      constexpr bool takes_rest = detail::takes_rest<F>(first);
      if constexpr (takes_rest || detail::takes_tensors<F>(first)) {
        if (specs.size() == n || (takes_rest && specs.size() > n)) {
          const detail::Body body = [&](In in) { return detail::called_with_tensors(core.f, in, first); };
          return use(body, specs);
        }
      }
      return self(self, std::integral_constant<std::size_t, n + 1>());
    }
  };
  return with(with, std::integral_constant<std::size_t, 0>());
}

template <class F>
ObjectFiles Function<F>::export_object(const std::filesystem::path& stem, std::vector<Spec> specs,
                                       ObjectOptions options) const {
  return with_body("export_object", std::move(specs), [&](const detail::Body& body, const std::vector<Spec>& given) {
    return core().traced.export_object(stem, given, options, {}, body);
  });
}

template <class F>
std::shared_ptr<const detail::TracedStep> Function<F>::trace_step(const std::vector<Spec>& specs) const {
  return with_body("export_objects", specs, [&](const detail::Body& body, const std::vector<Spec>& given) {
    return core().traced.trace_step(given, {}, body);
  });
}

/// A step of export_objects: the name that follows the stem in the name of its function, and the specs of its
/// arguments, which may be left out where input_signature fixes all sizes.
class ExportedStep {
 public:
  template <class F>
  ExportedStep(std::string name, const Function<F>& step, std::vector<Spec> specs = {})
      : name_(std::move(name)), trace_([step, specs = std::move(specs)] { return step.trace_step(specs); }) {}

  // For the rooms of the library.
  const std::string& name() const { return name_; }
  std::shared_ptr<const detail::TracedStep> trace() const { return trace_(); }

 private:
  std::string name_;
  std::function<std::shared_ptr<const detail::TracedStep>()> trace_;
};

template <class F> std::string Function<F>::stablehlo(std::vector<Spec> specs) const {
  return with_body("stablehlo", std::move(specs), [&](const detail::Body& body, const std::vector<Spec>& given) {
    return core().traced.stablehlo(given, {}, body);
  });
}

template <class F>
void Function<F>::export_stablehlo(const std::filesystem::path& file, std::vector<Spec> specs) const {
  detail::write_stablehlo(file, stablehlo(std::move(specs)));
}

template <class F>
template <class... A>
  requires(detail::kind_of_call<F, A...>() == detail::CallKind::right)
auto Function<F>::operator()(const A&... arguments) const -> std::invoke_result_t<const F&, detail::traced_t<A>...> {
  using Result = std::invoke_result_t<const F&, detail::traced_t<A>...>;
  Core& core = this->core();
  Tensors flat;
  detail::StaticArguments statics{.values = {}, .types = &detail::types_tag<detail::traced_t<A>...>};
  (detail::flatten_argument(arguments, flat, statics.values), ...);
  const detail::MaskedArguments masked(flat, statics);
  const detail::Body body = [&](In in) {
    detail::Called made = detail::called_with(core.f, masked.take(in), [](auto&) {}, arguments...);
    detail::SequenceMask::append_all(made.tensors);
    return made;
  };
  const detail::Called called = core.traced.call(flat, statics, body);
  if constexpr (!std::is_void_v<Result>) {
    Result result = *static_cast<const Result*>(called.structure.get());
    std::size_t next = 0;
    detail::visit_result(result, [&](Tensor& part) { part = called.tensors[next++]; });
    if (next < called.tensors.size()) [[unlikely]]  // masks
      detail::visit_result(result, [&](Tensor& part) { detail::SequenceMask::give(part, called.tensors[next++]); });
    return result;
  }
}

}  // namespace gradus
