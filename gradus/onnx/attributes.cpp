/// The attributes that ONNX defines for its ops. An attribute of a node beyond them is refused instead of ignored, as
/// is one that an older or a newer opset defines. Printed by tests/onnx/make_attributes.py; an op that is not listed
/// has none.
#include "gradus/onnx/attributes.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace gradus::onnx {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

/// By name: attributes, separated by blanks; "axis@1-6" is one of the opsets 1 to 6, "saturate@19-" one from 19 on.
constexpr auto entries = std::to_array<Entry>({
    {"Abs", "consumed_inputs@1-5"},
    {"Adagrad", "decay_factor epsilon norm_coefficient"},
    {"Adam", "alpha beta epsilon norm_coefficient norm_coefficient_post"},
    {"Add", "axis@1-6 broadcast@1-6 consumed_inputs@1-5"},
    {"AffineGrid", "align_corners"},
    {"And", "axis@1-6 broadcast@1-6"},
    {"ArgMax", "axis keepdims select_last_index@12-"},
    {"ArgMin", "axis keepdims select_last_index@12-"},
    {"Attention",
     "is_causal kv_num_heads left_window_size@25- q_num_heads qk_matmul_output_mode right_window_size@25- scale "
     "softcap softmax_precision"},
    {"AveragePool", "auto_pad ceil_mode@10- count_include_pad@7- dilations@19- kernel_shape pads strides"},
    {"BatchNormalization", "consumed_inputs@1-5 epsilon is_test@1-6 momentum spatial@1-8 training_mode@14-"},
    {"Bernoulli", "dtype seed"},
    {"BitCast", "to"},
    {"BitShift", "direction"},
    {"BlackmanWindow", "output_datatype periodic"},
    {"Cast", "round_mode@24- saturate@19- to"},
    {"CastLike", "round_mode@24- saturate@19-"},
    {"CausalConvWithState", "activation"},
    {"Ceil", "consumed_inputs@1-5"},
    {"Celu", "alpha"},
    {"CenterCropPad", "axes"},
    {"Clip", "consumed_inputs@1-5 max@1-10 min@1-10"},
    {"Col2Im", "dilations pads strides"},
    {"Compress", "axis"},
    {"Concat", "axis"},
    {"ConcatFromSequence", "axis new_axis"},
    {"Constant",
     "sparse_value@11- value value_float@12- value_floats@12- value_int@12- value_ints@12- value_string@12- "
     "value_strings@12-"},
    {"ConstantOfShape", "value"},
    {"Conv", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvInteger", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"CumProd", "exclusive reverse"},
    {"CumSum", "exclusive reverse"},
    {"DFT", "axis@17-19 inverse onesided"},
    {"DeformConv", "dilations group kernel_shape offset_group pads strides"},
    {"DepthToSpace", "blocksize mode@11-"},
    {"DequantizeLinear", "axis@13- block_size@21- output_dtype@23-"},
    {"Div", "axis@1-6 broadcast@1-6 consumed_inputs@1-5"},
    {"Dropout", "consumed_inputs@1-5 is_test@1-6 ratio@1-11 seed@12-"},
    {"Einsum", "equation"},
    {"Elu", "alpha consumed_inputs@1-5"},
    {"Equal", "axis@1-6 broadcast@1-6"},
    {"Exp", "consumed_inputs@1-5"},
    {"EyeLike", "dtype k"},
    {"Flatten", "axis"},
    {"FlexAttention", "prob_mod scale score_mod softmax_precision"},
    {"Floor", "consumed_inputs@1-5"},
    {"GRU",
     "activation_alpha activation_beta activations clip direction hidden_size layout@14- linear_before_reset@3- "
     "output_sequence@1-6"},
    {"Gather", "axis"},
    {"GatherElements", "axis"},
    {"GatherND", "batch_dims@12-"},
    {"Gelu", "approximate"},
    {"Gemm", "alpha beta broadcast@1-6 transA transB"},
    {"GlobalLpPool", "p"},
    {"Gradient", "xs y zs"},
    {"Greater", "axis@1-6 broadcast@1-6"},
    {"GridSample", "align_corners mode padding_mode"},
    {"GroupNormalization", "epsilon num_groups stash_type"},
    {"HammingWindow", "output_datatype periodic"},
    {"HannWindow", "output_datatype periodic"},
    {"HardSigmoid", "alpha beta consumed_inputs@1-5"},
    {"Hardmax", "axis"},
    {"If", "else_branch then_branch"},
    {"ImageDecoder", "pixel_format"},
    {"InstanceNormalization", "consumed_inputs@1-5 epsilon"},
    {"IsInf", "detect_negative detect_positive"},
    {"LRN", "alpha beta bias size"},
    {"LSTM",
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout@14- "
     "output_sequence@1-6"},
    {"LayerNormalization", "axis epsilon stash_type"},
    {"LeakyRelu", "alpha consumed_inputs@1-5"},
    {"Less", "axis@1-6 broadcast@1-6"},
    {"LinearAttention", "chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"Log", "consumed_inputs@1-5"},
    {"LogSoftmax", "axis"},
    {"Loop", "body"},
    {"LpNormalization", "axis p"},
    {"LpPool", "auto_pad ceil_mode@18- dilations@18- kernel_shape p pads strides"},
    {"Max", "consumed_inputs@1-5"},
    {"MaxPool", "auto_pad ceil_mode@10- dilations@10- kernel_shape pads storage_order@8- strides"},
    {"MaxRoiPool", "pooled_shape spatial_scale"},
    {"MaxUnpool", "kernel_shape pads strides"},
    {"Mean", "consumed_inputs@1-5"},
    {"MeanVarianceNormalization", "axes"},
    {"MelWeightMatrix", "output_datatype"},
    {"Min", "consumed_inputs@1-5"},
    {"Mod", "fmod"},
    {"Momentum", "alpha beta mode norm_coefficient"},
    {"Mul", "axis@1-6 broadcast@1-6 consumed_inputs@1-5"},
    {"Multinomial", "dtype sample_size seed"},
    {"Neg", "consumed_inputs@1-5"},
    {"NegativeLogLikelihoodLoss", "ignore_index reduction"},
    {"NonMaxSuppression", "center_point_box"},
    {"OneHot", "axis"},
    {"Optional", "type"},
    {"Or", "axis@1-6 broadcast@1-6"},
    {"PRelu", "consumed_inputs@1-5"},
    {"Pad", "mode paddings@1-1 pads@2-10 value@1-10"},
    {"Pow", "axis@1-6 broadcast@1-6"},
    {"QLinearConv", "auto_pad dilations group kernel_shape pads strides"},
    {"QuantizeLinear", "axis@13- block_size@21- output_dtype@21- precision@23- saturate@19-"},
    {"RMSNormalization", "axis epsilon stash_type"},
    {"RNN", "activation_alpha activation_beta activations clip direction hidden_size layout@14- output_sequence@1-6"},
    {"RandomNormal", "dtype mean scale seed shape"},
    {"RandomNormalLike", "dtype mean scale seed"},
    {"RandomUniform", "dtype high low seed shape"},
    {"RandomUniformLike", "dtype high low seed"},
    {"Range", "stash_type@27-"},
    {"Reciprocal", "consumed_inputs@1-5"},
    {"ReduceL1", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceL2", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceLogSum", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceLogSumExp", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceMax", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceMean", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceMin", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceProd", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"ReduceSum", "axes@1-12 keepdims noop_with_empty_axes@13-"},
    {"ReduceSumSquare", "axes@1-17 keepdims noop_with_empty_axes@18-"},
    {"RegexFullMatch", "pattern"},
    {"Relu", "consumed_inputs@1-5"},
    {"Reshape", "allowzero@14- consumed_inputs@1-4 shape@1-4"},
    {"Resize",
     "antialias@18- axes@18- coordinate_transformation_mode@11- cubic_coeff_a@11- exclude_outside@11- "
     "extrapolation_value@11- keep_aspect_ratio_policy@18- mode nearest_mode@11-"},
    {"ReverseSequence", "batch_axis time_axis"},
    {"RoiAlign", "coordinate_transformation_mode@16- mode output_height output_width sampling_ratio spatial_scale"},
    {"RotaryEmbedding", "interleaved num_heads rotary_embedding_dim"},
    {"STFT", "onesided"},
    {"Scan",
     "body directions@8-8 num_scan_inputs scan_input_axes@9- scan_input_directions@9- scan_output_axes@9- "
     "scan_output_directions@9-"},
    {"Scatter", "axis"},
    {"ScatterElements", "axis reduction@16-"},
    {"ScatterND", "reduction@16-"},
    {"Selu", "alpha consumed_inputs@1-5 gamma"},
    {"SequenceEmpty", "dtype"},
    {"SequenceMap", "body"},
    {"Shape", "end@15- start@15-"},
    {"Shrink", "bias lambd"},
    {"Sigmoid", "consumed_inputs@1-5"},
    {"Slice", "axes@1-9 ends@1-9 starts@1-9"},
    {"Softmax", "axis"},
    {"SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"SpaceToDepth", "blocksize mode@28-"},
    {"Split", "axis num_outputs@18- split@1-12"},
    {"SplitToSequence", "axis keepdims"},
    {"Sqrt", "consumed_inputs@1-5"},
    {"Squeeze", "axes@1-12"},
    {"StringNormalizer", "case_change_action is_case_sensitive locale stopwords"},
    {"StringSplit", "delimiter maxsplit"},
    {"Sub", "axis@1-6 broadcast@1-6 consumed_inputs@1-5"},
    {"Sum", "consumed_inputs@1-5"},
    {"SwiGLU", "alpha"},
    {"Swish", "alpha"},
    {"Tanh", "consumed_inputs@1-5"},
    {"TensorScatter", "axis mode"},
    {"TfIdfVectorizer",
     "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s pool_strings weights"},
    {"ThresholdedRelu", "alpha"},
    {"TopK", "axis k@1-9 largest@11- sorted@11-"},
    {"Transpose", "perm"},
    {"Trilu", "upper"},
    {"Unique", "axis sorted"},
    {"Unsqueeze", "axes@1-12"},
    {"Upsample", "height_scale@1-6 mode scales@7-8 width_scale@1-6"},
    {"Xor", "axis@1-6 broadcast@1-6"},
});

/// The text up to `separator`, which is cut off `rest` with it.
std::string_view cut(std::string_view& rest, char separator) {
  const auto end = std::ranges::find(rest, separator);
  const std::string_view first(rest.begin(), end);
  rest = std::string_view(end == rest.end() ? end : end + 1, rest.end());
  return first;
}

/// True if "1-6" or "19-" holds `opset`.
bool holds(std::string_view range, std::int64_t opset) {
  const auto number = [](std::string_view digits, std::int64_t otherwise) {
    std::from_chars(digits.data(), digits.data() + digits.size(), otherwise);
    return otherwise;
  };
  const std::int64_t first = number(cut(range, '-'), 0);
  return first <= opset && opset <= number(range, std::numeric_limits<std::int64_t>::max());
}

/// "axis@1-6" or "axis" as its name and whether `opset` has it.
std::pair<std::string_view, bool> at_opset(std::string_view word, std::int64_t opset) {
  const std::string_view name = cut(word, '@');
  bool found = word.empty();
  while (!word.empty()) found = holds(cut(word, '@'), opset) || found;
  return {name, found};
}

std::string_view row_of(std::string_view op) {
  const auto found = std::ranges::find(entries, op, &Entry::first);
  return found == entries.end() ? "" : found->second;
}

}  // namespace

std::string attributes_of(std::string_view op, std::int64_t opset) {
  std::string names;
  for (std::string_view rest = row_of(op); !rest.empty();) {
    const auto [name, is_there] = at_opset(cut(rest, ' '), opset);
    if (is_there) names.append(names.empty() ? "" : " ").append(name);
  }
  return names;
}

bool has_attribute(std::string_view op, std::string_view name, std::int64_t opset) {
  for (std::string_view rest = row_of(op); !rest.empty();)
    if (at_opset(cut(rest, ' '), opset) == std::pair(name, true)) return true;
  return false;
}

std::string opsets_with(std::string_view op, std::string_view name) {
  for (std::string_view rest = row_of(op); !rest.empty();) {
    std::string_view ranges = cut(rest, ' ');
    if (cut(ranges, '@') != name) continue;
    std::string all(ranges);
    std::ranges::replace(all, '@', ' ');
    return all;
  }
  return {};
}

}  // namespace gradus::onnx
