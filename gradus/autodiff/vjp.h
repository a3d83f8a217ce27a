/// Reverse mode. The graph is the record: a gradient is a walk from the result back to the sources that builds ordinary
/// nodes. So it can be traced, fused and differentiated again.
#pragma once
#include <functional>
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Where a walk ends: it never looks behind a node for which `stops` holds.
using Stops = std::function<bool(const Node&)>;

/// Vector-Jacobian product: d(sum(y * seed)) / d(source), in each source's spec. An empty Tensor where y does not
/// depend on a source. An empty seed is one. Nodes made by other threads are constants.
Tensors vjp(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed = {}, const Stops& stops = {});

/// vjp of several targets in one walk: d(sum over k of sum(ys[k] * seeds[k])). An empty seed counts as zero.
Tensors vjp(In ys, std::span<const Tensor> sources, In seeds, const Stops& stops = {});

/// The terms that vjp(y, ...) adds up: for each source its terms in their order; none where y does not depend on it.
std::vector<Tensors> vjp_terms(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed = {},
                               const Stops& stops = {});

/// True if y depends on values that the shards of a batch make together. `stops` tells at which nodes the search ends.
bool reads_all_shards(const Tensor& y, const Stops& stops);

}  // namespace gradus
