/// Reverse mode. The graph is the record: a gradient is a walk from the result back to the sources that builds ordinary
/// nodes, so it can be traced, fused and differentiated again.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Where a walk may go: it never looks behind a node for which `stops` holds.
using Stops = std::function<bool(const Node&)>;

/// d(sum(y * seed)) / d(source), of each source's spec; an empty Tensor where y does not depend on a source. An empty
/// seed is one. Nodes made by other threads are constants.
Tensors vjp(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed = {}, const Stops& stops = {});

/// The same of several targets at once, d(sum over k of sum(ys[k] * seeds[k])): one walk. An empty seed counts as zero.
Tensors vjp(In ys, std::span<const Tensor> sources, In seeds, const Stops& stops = {});

/// What vjp(y, ...) adds up, apart: of each source the terms in their order; none where y does not depend on it.
std::vector<Tensors> vjp_terms(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed = {},
                               const Stops& stops = {});

}  // namespace gradus
