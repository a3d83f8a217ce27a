/// Model<Net>: a struct of layers becomes a model. Its layers and variables are found and named after the fields
/// ("layers_0/kernel"); nothing is registered.
///
///   struct Net {
///     Dense hidden{64, relu}, scores{10};
///     Tensor operator()(Tensor x) const { return scores(hidden(x)); }
///   };
///   Model<Net> model;
///
/// Layers may be in structs, arrays (also of C), optionals, variants, pairs, tuples and standard containers (a map's
/// keys are in the names). They may be behind std::shared_ptr and std::unique_ptr, and behind raw pointers and
/// std::reference_wrapper, which lead to objects that others own. Layers directly in a class with constructors, bases
/// or private fields are found, too, and named by their kind ("block/dense", "block/dense_1"). A class with layers on
/// the heap lists all of its layers, in one line:
///
///   auto layers() const { return named_layers("first", first_, "blocks", blocks_); }   // or std::tie(first_, blocks_)
///
/// InvalidArgument if a layer with variables or penalties runs within the call, but is not found: one that is made
/// there, in a lambda or a global. Reading a trainable Variable that is not found is an InvalidArgument, too.
///
/// Fields that are bool, numbers or enums belong to the signature of a compiled function that calls the model: changing
/// one is a retrace that names it. Other fields (tensors, texts, functions, and private contents of a class) are C++
/// state, frozen when traced.
#pragma once
#include <tuple>
#include "gradus/nn/layers.h"
#include "gradus/nn/struct_layer.h"

namespace gradus {

namespace detail {

template <class T>
concept IsMode = std::same_as<T, training_t> || std::same_as<T, inference_t>;

inline CallMode mode_of(training_t) { return CallMode::training; }
inline CallMode mode_of(inference_t) { return CallMode::inference; }

/// The result of Net for inputs A..., of which the last may be a mode. No type if Net does not take them.
template <class Net, class Inputs, class... Rest> struct net_result {};
template <class Net, class... In>
  requires std::invocable<const Net&, const In&...>
struct net_result<Net, std::tuple<In...>> {
  using type = std::invoke_result_t<const Net&, const In&...>;
};
template <class Net, class... In, IsMode Mode>
  requires std::invocable<const Net&, const In&...>
struct net_result<Net, std::tuple<In...>, Mode> {
  using type = std::invoke_result_t<const Net&, const In&...>;
};
template <class Net, class... In, class Next, class... Rest>
  requires(!IsMode<Next>)
struct net_result<Net, std::tuple<In...>, Next, Rest...> : net_result<Net, std::tuple<In..., Next>, Rest...> {};

/// True if a Net& takes these inputs, the last of which may be a mode.
template <class Net, class... A> constexpr bool is_called_as = std::invocable<Net, const A&...>;
template <class Net, class... A>
  requires(sizeof...(A) > 0 && !std::invocable<Net, const A&...>)
constexpr bool is_called_as<Net, A...> = []<std::size_t... i>(std::index_sequence<i...>) {
  using All = std::tuple<A...>;
  return IsMode<std::tuple_element_t<sizeof...(i), All>> && std::invocable<Net, const std::tuple_element_t<i, All>&...>;
}(std::make_index_sequence<sizeof...(A) - 1>());

/// Arguments that a Model<Net> takes itself.
template <class Net, class... A> constexpr bool OfModel = false;
template <class Net, class A>
constexpr bool OfModel<Net, A> = std::convertible_to<A, Net> || std::derived_from<std::remove_cvref_t<A>, Module>;
template <class Net, class A, class Options>
constexpr bool OfModel<Net, A, Options> = std::convertible_to<A, Net> && std::convertible_to<Options, ModelOptions>;

inline Tensor computed(const Layer& layer, const Tensor& x) { return layer.computed(x); }
const auto& computed(const Layer&, const auto& x) { return x; }

/// A Variable is read before the call: it is an input, and not the model's.
inline Tensor read(const Variable& x) { return x.value(); }
const auto& read(const auto& x) { return x; }

inline void add_spec(std::vector<Spec>& specs, const Tensor& x) { specs.push_back(x.spec()); }
void add_spec(std::vector<Spec>&, const auto&) {}

/// Calls the struct with these tensors, at most six. False if it does not take that number.
template <class Net> bool call_with_tensors(const Net& net, In in) {
  const auto fits = [&]<std::size_t... i>(std::index_sequence<i...>) {
    if constexpr (std::invocable<const Net&, decltype((static_cast<void>(i), std::declval<const Tensor&>()))...>) {
      if (in.size() != sizeof...(i)) return false;
      net(in[i]...);
      return true;
    }
    return false;
  };
  return fits(std::make_index_sequence<1>()) || fits(std::make_index_sequence<2>()) ||
         fits(std::make_index_sequence<3>()) || fits(std::make_index_sequence<4>()) ||
         fits(std::make_index_sequence<5>()) || fits(std::make_index_sequence<6>());
}

template <class Net> struct NetLayerOf final : StructLayer<Net, NetLayerOf<Net>> {
  using StructLayer<Net, NetLayerOf<Net>>::StructLayer;
  using StructLayer<Net, NetLayerOf<Net>>::net;
  Tensor call(const Tensor& x) const override {
    if constexpr (std::is_invocable_r_v<Tensor, const Net&, const Tensor&>) return net(x);
    else fail_as_module(*this);
  }
  void run_on(In inputs) const override {
    require(call_with_tensors(net, inputs), "build: the model does not take ", inputs.size(), " inputs");
  }
};

}  // namespace detail

/// The result of a model of Net for inputs A..., the last of which may be a mode.
template <class Net, class... A> using call_result_t = typename detail::net_result<Net, std::tuple<>, A...>::type;

/// A model with the layers of a struct. Net has a const operator() from tensors to a Tensor, or to a tuple or array of
/// them. Copying copies the variables, also behind std::shared_ptr: if several share one, they share one in the copy.
/// Objects behind raw pointers are not copied; pointers into the model itself point into the copy. Copying a Net that
/// cannot be copied, with a std::unique_ptr, is an InvalidArgument. Assigning is that of modules: fields of a built
/// model stay in place, so that references to them hold.
template <class Net> struct Model : Module {
  Model() : Module(made()) {}
  // A mistake: compilers quote the line.
  template <class... A>
    requires(sizeof...(A) > 0 && !detail::OfModel<Net, A...> && std::constructible_from<Net, A...>)
  explicit Model(A&&...) = delete;  // the struct is made first: Model model(Net(arguments))
  explicit Model(Net net, ModelOptions options = {})
      : Module(std::make_shared<detail::NetLayerOf<Net>>(std::move(net))) {
    if (!options.name.empty()) set_name(options.name);
    if (options.policy.value() != float32) set_policy(options.policy.value());
  }

  /// The result for these inputs; a mode comes last: model(a, b), model(a, b, training). The first call builds.
  template <class... A>
    requires requires { typename call_result_t<Net, A...>; }
  auto operator()(const A&... inputs) const -> call_result_t<Net, A...> {
    if constexpr ((std::same_as<A, Variable> || ...) &&
                  requires { typename call_result_t<Net, std::remove_cvref_t<decltype(detail::read(inputs))>...>; })
      return (*this)(detail::read(inputs)...);
    else return call_first(std::make_index_sequence<sizeof...(A)>(), std::tie(inputs...));
  }
  // Mistakes: compilers quote the line.
  template <class... A>
    requires(!requires { typename call_result_t<Net, A...>; } && detail::is_called_as<Net&, A...>)
  void operator()(const A&...) const = delete;  // operator() of the struct must be const
  template <class... A>
    requires(!requires { typename call_result_t<Net, A...>; } && !detail::is_called_as<Net&, A...>)
  void operator()(const A&...) const = delete;  // the struct takes other inputs; a mode comes last: model(x, training)

  using Module::build;
  /// Builds for several inputs: model.build({{f32, {any_size, 8}}, {i32, {any_size}}}).
  void build(std::initializer_list<Spec> inputs) {
    layer_behind().ensure_built(std::span(inputs.begin(), inputs.size()));
  }

  /// Access to the struct's fields.
  Net* operator->() const {
    const auto layer = net_layer();
    layer->note_looked_at();
    return &layer->net;
  }

 private:
  static std::shared_ptr<detail::Layer> made() {
    if constexpr (std::derived_from<Net, Module> && std::is_aggregate_v<Net>) {
      static_assert(std::is_void_v<Net>,
                    "Model<Net>: Net is a plain struct of layers: struct Net { ... }, not : Module");
      return nullptr;
    } else if constexpr (!std::default_initializable<Net>) {
      static_assert(std::is_void_v<Net>, "Model<Net>: Net cannot be made without arguments: Model model(Net(...))");
      return nullptr;
    } else {
      return std::make_shared<detail::NetLayerOf<Net>>();
    }
  }
  std::shared_ptr<detail::NetLayerOf<Net>> net_layer() const {
    auto layer = std::dynamic_pointer_cast<detail::NetLayerOf<Net>>(shared_layer());
    require(static_cast<bool>(layer),
            "this model is empty or holds another kind of module: it was moved from, or a "
            "module that is no such model was assigned to it; assign a model to it first");
    return layer;
  }

  template <std::size_t... i, class Inputs> auto call_first(std::index_sequence<i...>, const Inputs& inputs) const {
    constexpr std::size_t n = sizeof...(i);
    if constexpr (detail::IsMode<std::remove_cvref_t<std::tuple_element_t<n - 1, Inputs>>>) {
      const ModeScope mode(detail::mode_of(std::get<n - 1>(inputs)));
      return call(std::make_index_sequence<n - 1>(), inputs);
    } else {
      return call(std::make_index_sequence<n>(), inputs);
    }
  }
  template <std::size_t... i, class Inputs> auto call(std::index_sequence<i...>, const Inputs& inputs) const {
    const detail::NetCall entered(*this, net_layer());
    const auto& layer = static_cast<const detail::NetLayerOf<Net>&>(entered.layer());
    auto result = layer.net(detail::computed(layer, std::get<i>(inputs))...);
    std::vector<Spec> specs;
    (detail::add_spec(specs, std::get<i>(inputs)), ...);
    entered.finish(std::move(specs));
    return result;
  }
};

}  // namespace gradus
