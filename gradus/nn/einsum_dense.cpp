/// Derives the shapes of kernel and bias from the letters of the equation.
#include "gradus/nn/einsum_dense.h"
#include <algorithm>
#include <array>
#include <map>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr std::string_view einsum_layer = "EinsumDense";

/// "ab...,bc->ac...": input "ab", kernel "bc", output "ac", and where dimensions are left out.
struct Equation {
  std::string input, kernel, output;
  bool elided_left = false, elided_right = false;
};

/// `term` without its dots; whether they stand before or after the letters.
std::array<bool, 2> take_dots(std::string& term) {
  std::array<bool, 2> at{};
  if (term.starts_with("...")) {
    at[0] = true;
    term.erase(0, 3);
  } else if (term.ends_with("...")) {
    at[1] = true;
    term.erase(term.size() - 3);
  }
  return at;
}

Equation parsed(const std::string& text) {
  const auto check = [&](bool ok) {
    require(ok, einsum_layer, ": the equation is \"", text,
            "\", expected one of the forms \"ab,bc->ac\", \"...x,xy->...y\" and \"ab...,bc->ac...\"");
  };
  const std::size_t comma = text.find(','), arrow = text.find("->");
  check(comma != std::string::npos && arrow != std::string::npos && comma < arrow);
  Equation e{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  const auto of_input = take_dots(e.input), of_output = take_dots(e.output);
  check(of_input == of_output);
  e.elided_left = of_input[0];
  e.elided_right = of_input[1];
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (const std::string* term : {&e.input, &e.kernel, &e.output}) {
    check(!term->empty());
    for (const char c : *term) check(is_letter(c) && std::ranges::count(*term, c) == 1);
  }
  const auto known = [](const std::string& term, char c) { return term.find(c) != std::string::npos; };
  for (const char c : e.output)
    require(known(e.input, c) || known(e.kernel, c), einsum_layer, ": letter ", c, " of the result of \"", text,
            "\" stands in no operand");
  for (const char c : e.kernel)
    require(known(e.input, c) || known(e.output, c), einsum_layer, ": letter ", c, " of the kernel of \"", text,
            "\" stands neither in the input nor in the result");
  return e;
}

struct EinsumDenseLayer final : Cloned<EinsumDenseLayer>, Described {
  EinsumDenseLayer(const std::string& text, std::vector<std::int64_t> sizes, EinsumDenseOptions o)
      : written(text), equation(parsed(text)), output_sizes(std::move(sizes)), options(std::move(o)) {
    const std::size_t expected = equation.output.size() - (equation.elided_left ? 0 : 1);
    require(output_sizes.size() == expected, einsum_layer, ": output_shape has ", output_sizes.size(), " sizes, \"",
            text, "\" needs ", expected, ": without the batch and without what ... stands for");
    for (const char c : options.bias_axes)
      require(equation.output.find(c) != std::string::npos, einsum_layer, ": bias axis ", c, " is none of the result ",
              equation.output);
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return "einsum_dense"; }
  LayerConfig config() const override {
    LayerConfig made{"EinsumDense",
                     {{"equation", written},
                      {"output_shape", OpenSizes{output_sizes}},
                      {"activation", options.activation},
                      {"kernel_regularizer", options.kernel_regularizer},
                      {"bias_regularizer", options.bias_regularizer},
                      {"activity_regularizer", options.activity_regularizer}}};
    if (!options.bias_axes.empty()) made.options.push_back({"bias_axes", options.bias_axes});
    return made;
  }

  void build(const Spec& input) override {
    check_rank(input);
    require(is_floating(input.dtype), einsum_layer, ": the input is ", input, ", expected a floating type; cast it");
    const std::map<char, std::int64_t> sizes = sizes_for(input);
    Shape kernel;
    std::int64_t fan_in = 1, fan_out = 1;
    for (const char c : equation.kernel) {
      const std::int64_t size = sizes.at(c);
      require(size > 0, einsum_layer, ": dimension ", c, " of the kernel is not known from the input ", input,
              " or output_shape");
      kernel.push_back(size);
      (equation.input.find(c) == std::string::npos ? fan_out : fan_in) *= size;
    }
    const Tensor first = options.kernel_initializer({fan_in, fan_out});
    add_variable("kernel", cast(reshape(first, kernel), input.dtype), options.kernel_regularizer);
    if (!options.bias_axes.empty())
      add_variable("bias", cast(options.bias_initializer(bias_shape(input, sizes)), input.dtype),
                   options.bias_regularizer);
  }
  Tensor call(const Tensor& x) const override {
    check_rank(x.spec());
    const std::string more = unused_letters(x.shape().rank() - static_cast<int>(equation.input.size()));
    const auto whole = [&](const std::string& term) { return equation.elided_left ? more + term : term + more; };
    const Tensor y =
        einsum(whole(equation.input) + "," + equation.kernel + "->" + whole(equation.output), {x, parameter(0)});
    return options.activation(options.bias_axes.empty() ? y : y + parameter(1));
  }

  std::string written;
  Equation equation;
  std::vector<std::int64_t> output_sizes;
  EinsumDenseOptions options;

 private:
  void check_rank(const Spec& input) const {
    const int letters = static_cast<int>(equation.input.size());
    const bool is_open = equation.elided_left || equation.elided_right;
    require(is_open ? input.shape.rank() >= letters : input.shape.rank() == letters, einsum_layer, " ", name(),
            ": the input is ", input, ", but the equation names ", letters, " dimensions, ", equation.input);
  }
  /// The size of each letter; -1: not known.
  std::map<char, std::int64_t> sizes_for(const Spec& input) const {
    std::map<char, std::int64_t> sizes;
    const std::size_t before_output = equation.elided_left ? 0 : 1;
    for (std::size_t i = before_output; i < equation.output.size(); ++i)
      sizes[equation.output[i]] = output_sizes[i - before_output];
    const int left = equation.elided_left ? input.shape.rank() - static_cast<int>(equation.input.size()) : 0;
    for (std::size_t i = 0; i < equation.input.size(); ++i) {
      const std::int64_t given = input.shape[left + static_cast<int>(i)];
      const auto [at, is_new] = sizes.emplace(equation.input[i], given);
      require(is_new || at->second < 0 || given < 0 || at->second == given, einsum_layer, ": dimension ",
              equation.input[i], " is ", given, " in the input ", input, ", but output_shape says ", at->second);
      if (given >= 0) at->second = given;
    }
    return sizes;
  }
  /// From the first letter with a bias on, 1 where there is none.
  Shape bias_shape(const Spec& input, const std::map<char, std::int64_t>& sizes) const {
    Shape shape;
    for (const char c : equation.output) {
      const bool has_bias = options.bias_axes.find(c) != std::string::npos;
      if (!has_bias && shape.rank() == 0) continue;
      require(!has_bias || sizes.at(c) > 0, einsum_layer, ": dimension ", c,
              " of the bias is not known from the input ", input, " or output_shape");
      shape.push_back(has_bias ? sizes.at(c) : 1);
    }
    if (equation.elided_right)
      for (int i = static_cast<int>(equation.input.size()); i < input.shape.rank(); ++i) shape.push_back(1);
    return shape;
  }
  std::string unused_letters(int n) const {
    std::string letters;
    const std::string used = equation.input + equation.kernel + equation.output;
    for (char c = 'A'; static_cast<int>(letters.size()) < n; c = c == 'Z' ? 'a' : static_cast<char>(c + 1)) {
      require(c <= 'z', einsum_layer, ": an input of so many dimensions has no letters left for them");
      if (used.find(c) == std::string::npos) letters += c;
    }
    return letters;
  }
};

}  // namespace

EinsumDense::EinsumDense(std::string equation, std::vector<std::int64_t> output_shape, EinsumDenseOptions options)
    : Module(named(std::make_shared<EinsumDenseLayer>(equation, std::move(output_shape), options), options.name)) {}

}  // namespace gradus
