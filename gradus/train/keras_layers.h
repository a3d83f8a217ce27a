/// Layers of Keras's classes.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include "gradus/nn/attention.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/dot_attention.h"
#include "gradus/nn/recurrent.h"
#include "gradus/train/keras_options.h"

namespace gradus {

using MakeKerasLayer = std::function<Module(KerasOptions&)>;
/// By class name, without the layers that hold others.
const std::map<std::string, MakeKerasLayer>& keras_layers();
/// A SimpleRNN, GRU or LSTM; empty for another class. Layers that take several inputs follow.
std::optional<RecurrentModule> keras_recurrent(const std::string& class_name, KerasOptions& options);
/// A MultiHeadAttention or GroupedQueryAttention; empty for another class.
std::optional<MultiHeadAttention> keras_attention(const std::string& class_name, KerasOptions& options);
/// An Attention or AdditiveAttention; empty for another class. `causal`: its calls have a causal mask.
std::optional<AttentionModule> keras_dot_attention(const std::string& class_name, KerasOptions& options, bool causal);
/// A cell that holds no others. Empty, and a problem, if there is no such class.
std::optional<RecurrentCell> keras_cell(const std::string& class_name, KerasOptions& options);

}  // namespace gradus
