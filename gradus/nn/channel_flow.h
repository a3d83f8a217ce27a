/// ChannelFlow: how a layer treats channels, the elements along the last dimension of its input. This is needed to
/// remove channels from a model.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

/// How the channels of a layer's output depend on those of its input.
struct ChannelFlow {
  /// Kinds of dependence.
  enum class Kind {
    unknown,  // it may do anything
    apart,    // each channel becomes one or several channels of the output, which depend on it alone
    mixed     // every channel of the output may depend on all channels: there is a kernel
  };
  /// Axes of the channels in one of the layer's variables; -1: none of its axes.
  struct Axes {
    int inputs = -1, outputs = -1;  // axes of the input's and of the output's channels
    bool shifts = false;            // must be 0 for a channel to stay 0: a bias
  };
  Kind kind = Kind::unknown;    // kind of dependence
  std::vector<Axes> axes = {};  // one per variable of its own
  /// The output is activation(shift + a term that is 0 where the channel, or its column of the kernel, is 0). Empty: 0,
  /// and the identity.
  Tensor shift = {};
  std::function<Tensor(const Tensor&)> activation = {};  // see shift
  /// For kind `apart`: channel o of the output comes from channel (o / repeats) % channels of the input.
  std::int64_t repeats = 1, places = 1;

  /// True if this variable has an axis of output channels and is no bias.
  bool is_kernel(std::size_t variable) const { return axes[variable].outputs >= 0 && !axes[variable].shifts; }
};

/// Some channels in ascending order; empty: all of them.
using ChannelList = std::optional<std::vector<std::int64_t>>;

}  // namespace detail::inline rooms

}  // namespace gradus
