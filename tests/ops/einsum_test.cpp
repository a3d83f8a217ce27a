/// einsum against the definition: a sum over every assignment of numbers to letters.
#include <gtest/gtest.h>
#include <map>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus::einsum_test {
namespace {

struct Equation {
  std::string written;
  std::string letters;  // the same without dots and with its result, for the definition
  std::vector<Shape> shapes;
};
void PrintTo(const Equation& equation, std::ostream* out) { *out << equation.written; }

Tensor sample(const Shape& shape, int seed) {
  return reshape(cast(mod(range(shape.size(), i64) * 7 + seed * 3 + 1, 11), f64), shape) - 5;
}

std::int64_t offset(std::string_view letters, const Shape& shape, const std::map<char, std::int64_t>& at) {
  std::int64_t position = 0;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const std::int64_t size = shape[static_cast<int>(i)];
    position = position * size + (size == 1 ? 0 : at.at(letters[i]));
  }
  return position;
}

/// The definition, for letters alone; a dimension of 1 broadcasts.
std::vector<double> by_definition(const std::string& equation, const Tensors& inputs) {
  std::vector<std::string> terms{""};
  for (char c : equation.substr(0, equation.find("->")))
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  const std::string output = equation.substr(equation.find("->") + 2);
  std::map<char, std::int64_t> sizes, at;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t i = 0; i < terms[k].size(); ++i)
      sizes[terms[k][i]] = std::max(sizes[terms[k][i]], inputs[k].shape()[static_cast<int>(i)]);
  std::int64_t combinations = 1;
  for (const auto& [letter, size] : sizes) combinations *= size;
  Shape out;
  for (char c : output) out.push_back(sizes[c]);
  std::vector<double> result(static_cast<std::size_t>(out.size()));
  std::vector<std::vector<double>> values;
  for (const Tensor& x : inputs) values.push_back(x.to_vector<double>());
  for (std::int64_t n = 0; n < combinations; ++n) {
    std::int64_t rest = n;
    for (const auto& [letter, size] : sizes) {
      at[letter] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k)
      product *= values[k][static_cast<std::size_t>(offset(terms[k], inputs[k].shape(), at))];
    result[static_cast<std::size_t>(offset(output, out, at))] += product;
  }
  return result;
}

class Einsum : public testing::TestWithParam<Equation> {};

TEST_P(Einsum, IsTheSumOverAllLetters) {
  const Equation& equation = GetParam();
  Tensors inputs;
  for (std::size_t k = 0; k < equation.shapes.size(); ++k)
    inputs.push_back(sample(equation.shapes[k], static_cast<int>(k)));
  EXPECT_EQ(einsum(equation.written, inputs).to_vector<double>(), by_definition(equation.letters, inputs))
      << equation.written;
}

INSTANTIATE_TEST_SUITE_P(
    Equations, Einsum,
    testing::Values(Equation{"ij,jk->ik", "ij,jk->ik", {{2, 3}, {3, 4}}},
                    Equation{"ij,jk", "ij,jk->ik", {{2, 3}, {3, 4}}},               // implied result
                    Equation{"ba", "ba->ab", {{2, 3}}},                             // implied: alphabetical
                    Equation{" i j , k j -> k i ", "ij,kj->ki", {{2, 3}, {4, 3}}},  // blanks
                    Equation{"bij,bjk->bik", "bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
                    Equation{"bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
                    Equation{"bqhd,bkhd->bhqk", "bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}},
                    Equation{"ij->", "ij->", {{2, 3}}}, Equation{"ij->j", "ij->j", {{2, 3}}},
                    Equation{"ii->i", "ii->i", {{4, 4}}}, Equation{"ii", "ii->", {{4, 4}}},
                    Equation{"iji->j", "iji->j", {{3, 2, 3}}}, Equation{"iii->i", "iii->i", {{3, 3, 3}}},
                    Equation{"i,j->ij", "i,j->ij", {{2}, {3}}}, Equation{"i,i->i", "i,i->i", {{3}, {3}}},
                    Equation{"i,i->", "i,i->", {{3}, {3}}}, Equation{",ij->ji", ",ij->ji", {{}, {2, 3}}},
                    Equation{"ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
                    Equation{"ij,ik->i", "ij,ik->i", {{2, 3}, {2, 4}}},  // letters of one operand alone
                    Equation{"ijk,jl,l->ki", "ijk,jl,l->ki", {{2, 3, 4}, {3, 5}, {5}}},
                    Equation{"...ij,...jk->...ik", "abij,abjk->abik", {{2, 3, 2, 3}, {2, 3, 3, 4}}},
                    Equation{"...ij,...jk->...ik", "abij,abjk->abik", {{2, 1, 2, 3}, {1, 3, 3, 4}}},
                    Equation{"...ij,jk", "abij,jk->abik", {{2, 3, 2, 3}, {3, 4}}},
                    Equation{"i...->...i", "iab->abi", {{2, 3, 4}}}));

TEST(Einsum, RanksUnderDotsMayDiffer) {
  const Tensor a = sample({2, 3, 4, 5}, 0), b = sample({3, 5, 6}, 1);
  EXPECT_EQ(einsum("...ij,...jk->...ik", {a, b}).to_vector<double>(), matmul(a, b).to_vector<double>());
}

}  // namespace
}  // namespace gradus::einsum_test
