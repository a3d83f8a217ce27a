/// The graph of a Functional's config: which layer or op is called with which tensors, in which order.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/nn/functional_layer.h"

namespace gradus {

/// Makes the layer of a config. `causal`: its calls have a causal mask. Empty, and a problem, if there is none.
using MakeGraphLayer = std::function<std::optional<GraphLayer>(const nlohmann::json& written, bool causal)>;

/// The graph that `config` describes. Everything that is not known is added to `problems`; the graph is of no use then.
LayerGraph graph_of_config(const nlohmann::json& config, const MakeGraphLayer& make, bool inference_only,
                           std::vector<std::string>& problems);

/// The spec of an input of Keras, with a batch of any size.
Spec keras_input_spec(const nlohmann::json& shape, const nlohmann::json& dtype, std::vector<std::string>& problems);

}  // namespace gradus
