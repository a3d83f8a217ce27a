/// ChannelFlow: what a layer does with channels, the elements along the last dimension of its input: what has to be
/// known to remove some of them from a model.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

struct ChannelFlow {
  enum class Kind {
    unknown,  // it may do anything
    apart,    // each channel becomes one or several channels of the output, which depend on it alone
    mixed     // every channel of the output may depend on all: there is a kernel
  };
  /// Where channels lie in one of the layer's variables; -1: along none of its axes.
  struct Axes {
    int inputs = -1, outputs = -1;
    bool shifts = false;  // must be 0 for a channel to stay 0: a bias
  };
  Kind kind = Kind::unknown;
  std::vector<Axes> axes = {};  // of each variable of its own
  /// The output is activation(shift + what is 0 where the channel, or its column of the kernel, is 0); empty: 0, and
  /// the identity.
  Tensor shift = {};
  std::function<Tensor(const Tensor&)> activation = {};
  /// Of kind `apart`: channel o of the output comes from channel (o / repeats) % channels of the input.
  std::int64_t repeats = 1, places = 1;

  bool is_kernel(std::size_t variable) const { return axes[variable].outputs >= 0 && !axes[variable].shifts; }
};

/// Some channels, ascending; nothing: all of them.
using ChannelList = std::optional<std::vector<std::int64_t>>;

}  // namespace gradus
