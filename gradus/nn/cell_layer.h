/// The layer behind a recurrent cell, and cells that are structs of layers.
#pragma once
#include <functional>
#include <memory>
#include <vector>
#include "gradus/nn/cells.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/struct_layer.h"

namespace gradus {

/// The interface of the layers behind a RecurrentCell: one step.
struct CellLayer : detail::Layer {
  /// Sizes of the states, without the batch.
  virtual std::vector<std::int64_t> state_sizes() const = 0;
  /// Index of the state that has the size of the result.
  virtual std::size_t state_like_result() const { return 0; }
  /// True if that state is the result.
  virtual bool gives_its_state() const { return true; }
  /// One step: the result and the new state.
  virtual RecurrentOutput step(const Tensor& x, In state) const = 0;

  Tensor call(const Tensor& x) const override { return step(x, zero_state(x.shape()[0], x.dtype())).output; }
  /// A state of zeros.
  Tensors zero_state(std::int64_t batch, DType t) const;
  /// InvalidArgument unless `state` fits x and the cell.
  void check_state(const Tensor& x, In state) const;

 protected:
  bool has_fixed_setup() const override { return true; }
};

/// A cell with the step of a struct, which `net` holds.
std::shared_ptr<detail::Layer> custom_cell(
    std::shared_ptr<detail::NetLayer> net, std::vector<std::int64_t> state_sizes,
    std::function<RecurrentOutput(const detail::NetLayer& net, const Tensor& x, In state)> step,
    const std::string& name);

namespace detail {

template <class Net> struct CellNetLayer final : StructLayer<Net, CellNetLayer<Net>> {
  using StructLayer<Net, CellNetLayer<Net>>::StructLayer;
  using StructLayer<Net, CellNetLayer<Net>>::net;
  Tensor call(const Tensor&) const override { fail_as_module(*this); }
  void run_on(In in) const override { net(in[0], Tensors(in.begin() + 1, in.end())); }
};

template <class Net>
concept CellNet = requires(const Net& net, const Tensor& x, const std::vector<Tensor>& state) {
  { net(x, state) } -> std::same_as<RecurrentOutput>;
  { net.state_sizes() } -> std::convertible_to<std::vector<std::int64_t>>;
};

}  // namespace detail

/// A user's cell for RNN and StackedRNNCells: a struct of layers and Variables, which are found as a Model's are.
///
///   struct MinimalCell {
///     Dense candidate{8, tanh}, gate{8, sigmoid};
///     std::vector<std::int64_t> state_sizes() const { return {8}; }
///     RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
///       const Tensor z = gate(concat({x, state[0]}, -1)), h = state[0] + z * (candidate(x) - state[0]);
///       return {h, {h}};
///     }
///   };
///   RNN layer(CustomCell{MinimalCell()});
///
/// The first state has the size of the result. Fields that are neither layers nor Variables are frozen when traced.
template <detail::CellNet Net> struct CustomCell : RecurrentCell {
  explicit CustomCell(Net net, const std::string& name = {}) : RecurrentCell(made(std::move(net), name)) {}

 private:
  static std::shared_ptr<detail::Layer> made(Net net, const std::string& name) {
    std::vector<std::int64_t> sizes = net.state_sizes();
    const auto step = [](const detail::NetLayer& layer, const Tensor& x, In state) {
      return std::as_const(static_cast<const detail::CellNetLayer<Net>&>(layer).net)(
          x, Tensors(state.begin(), state.end()));
    };
    return custom_cell(std::make_shared<detail::CellNetLayer<Net>>(std::move(net)), std::move(sizes), step, name);
  }
};

}  // namespace gradus
