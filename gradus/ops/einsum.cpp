/// einsum: operands are contracted in pairs, first the pair that shrinks most. Each contraction groups dimensions into
/// batches, free and contracted ones. Then it is one batched matrix product, or an elementwise one where nothing is
/// summed.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/strided_ops.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// A letter; or 256 + i for the dimension under `...` that stands i before the last of those.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_ellipsis = 256;

bool contains(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }

struct Term {
  Labels before, after;  // the dots
  bool has_ellipsis = false;
};
struct Equation {
  std::vector<Term> inputs;
  Term output;
  bool has_output = false;
};

Term parse_term(std::string_view written, std::string_view equation) {
  Term term;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (c == ' ') continue;
    if (written.substr(i, 3) == "...") {
      require(!term.has_ellipsis, "einsum: \"", equation, "\" has `...` twice in one term");
      term.has_ellipsis = true;
      i += 2;
      continue;
    }
    require((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "einsum: `", c, "` in \"", equation,
            "\" is no letter; an equation looks like \"ij,jk->ik\"");
    (term.has_ellipsis ? term.after : term.before).push_back(c);
  }
  return term;
}

Equation parse_equation(std::string_view equation) {
  Equation parsed;
  const std::size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  if (arrow != std::string_view::npos) {
    parsed.has_output = true;
    parsed.output = parse_term(equation.substr(arrow + 2), equation);
  }
  for (std::size_t comma; (comma = left.find(',')) != std::string_view::npos; left.remove_prefix(comma + 1))
    parsed.inputs.push_back(parse_term(left.substr(0, comma), equation));
  parsed.inputs.push_back(parse_term(left, equation));
  return parsed;
}

Labels expand(const Term& term, int dots) {
  Labels labels = term.before;
  for (int i = dots; term.has_ellipsis && i-- > 0;) labels.push_back(first_ellipsis + i);
  labels.insert(labels.end(), term.after.begin(), term.after.end());
  return labels;
}

/// A tensor whose dimensions have labels.
struct Labelled {
  Tensor x;
  Labels labels;
};

Labelled in_order(const Labelled& t, const Labels& wanted) {
  std::vector<int> order;
  for (Label l : wanted)
    order.push_back(static_cast<int>(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin()));
  return {transpose(t.x, order), wanted};
}

/// Replaces two dimensions of equal size n by their diagonal, [outer, n, n] -> [outer, n]: of a row of n*n elements
/// every (n + 1)-th.
Labelled diagonal(const Labelled& t, std::size_t i, std::size_t j) {
  const int rank = t.x.shape().rank();
  std::vector<int> order;
  Labels labels;
  Shape outer;
  for (int k = 0; k < rank; ++k) {
    if (k == static_cast<int>(i) || k == static_cast<int>(j)) continue;
    order.push_back(k);
    labels.push_back(t.labels[static_cast<std::size_t>(k)]);
    outer.push_back(t.x.shape()[k]);
  }
  const std::int64_t n = t.x.shape()[static_cast<int>(i)], rows = outer.size();
  order.push_back(static_cast<int>(i));
  order.push_back(static_cast<int>(j));
  labels.push_back(t.labels[i]);
  outer.push_back(n);
  if (n == 0) return {reshape(transpose(t.x, order), outer), labels};
  const Tensor flat = reshape(transpose(t.x, order), {rows, dimension::multiply(n, n)});
  return {reshape(every(flat, 1, 0, n, dimension::add(n, 1)), outer), labels};
}

Labelled without_repetitions(Labelled t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i)
    for (std::size_t j = i + 1; j < t.labels.size(); ++j)
      if (t.labels[i] == t.labels[j]) return without_repetitions(diagonal(t, i, j));
  return t;
}

Labelled sum_out(const Labelled& t, const Labels& keep) {
  Labelled out;
  ReduceOptions options;
  for (std::size_t i = 0; i < t.labels.size(); ++i)
    if (contains(keep, t.labels[i])) out.labels.push_back(t.labels[i]);
    else options.axis.push_back(static_cast<int>(i));
  out.x = options.axis.empty() ? t.x : reduce_sum(t.x, options);
  return out;
}

/// Labels of a pair by what becomes of them.
struct Roles {
  Labels batch, free_a, free_b, contracted;
};
Roles roles_of(const Labelled& a, const Labelled& b, const Labels& keep) {
  Roles roles;
  for (Label l : a.labels)
    if (!contains(b.labels, l)) roles.free_a.push_back(l);
    else (contains(keep, l) ? roles.batch : roles.contracted).push_back(l);
  for (Label l : b.labels)
    if (!contains(a.labels, l)) roles.free_b.push_back(l);
  return roles;
}

Shape sizes(const Labelled& t, const Labels& of) {
  Shape shape;
  for (Label l : of)
    shape.push_back(t.x.shape()[static_cast<int>(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin())]);
  return shape;
}

Labels joined(std::initializer_list<Labels> groups) {
  Labels all;
  for (const Labels& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// [batch, rows, columns], each group of dimensions as one. If they already stand as [batch, columns, rows] a product
/// can read them in place as a transposed operand.
Tensor as_matrices(const Labelled& t, const Labels& batch, const Labels& rows, const Labels& columns) {
  const std::int64_t b = sizes(t, batch).size(), r = sizes(t, rows).size(), c = sizes(t, columns).size();
  if (t.labels == joined({batch, columns, rows})) return transpose(reshape(t.x, {b, c, r}));
  return reshape(in_order(t, joined({batch, rows, columns})).x, {b, r, c});
}

Labelled contract(Labelled a, Labelled b, const Labels& later) {
  a = sum_out(a, joined({b.labels, later}));
  b = sum_out(b, joined({a.labels, later}));
  const Roles roles = roles_of(a, b, later);
  Shape shape = sizes(a, joined({roles.batch, roles.free_a}));
  for (std::int64_t d : sizes(b, roles.free_b)) shape.push_back(d);
  const Tensor left = as_matrices(a, roles.batch, roles.free_a, roles.contracted);
  const Tensor right = as_matrices(b, roles.batch, roles.contracted, roles.free_b);
  const Tensor product = roles.contracted.empty() ? left * right : matmul(left, right);
  return {reshape(product, shape), joined({roles.batch, roles.free_a, roles.free_b})};
}

/// Elements of an operand with these labels; a size that is not known when tracing counts as a middling one.
double elements(const Labels& labels, const std::map<Label, std::int64_t>& extents) {
  double product = 1;
  for (Label l : labels) product *= extents.at(l) < 0 ? 64 : static_cast<double>(extents.at(l));
  return product;
}

/// The labels of all operands but two, and of the result.
Labels labels_beside(const std::vector<Labelled>& operands, std::size_t i, std::size_t j, const Labels& output) {
  Labels others = output;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (k != i && k != j) others = joined({others, operands[k].labels});
  return others;
}

/// The pair whose product is smallest beside what it takes the place of: the first of equals.
std::pair<std::size_t, std::size_t> next_pair(const std::vector<Labelled>& operands, const Labels& output,
                                              const std::map<Label, std::int64_t>& extents) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t j = i + 1; j < operands.size(); ++j) {
      const Labels &a = operands[i].labels, &b = operands[j].labels;
      const Labels others = labels_beside(operands, i, j, output);
      Labels kept;
      for (Label l : joined({a, b}))
        if (contains(others, l) && !contains(kept, l)) kept.push_back(l);
      const double growth = elements(kept, extents) - elements(a, extents) - elements(b, extents);
      if (SizeChoice::decide(growth < least)) {
        least = growth;
        best = {i, j};
      }
    }
  return best;
}

/// True if one product, or one sum, is all there is to do: no operand of several is summed for itself.
bool is_one_product(const std::vector<Labelled>& operands, const Labels& output) {
  if (operands.size() < 2) return true;
  return operands.size() == 2 &&
         std::ranges::all_of(operands[0].labels,
                             [&](Label l) { return contains(joined({operands[1].labels, output}), l); }) &&
         std::ranges::all_of(operands[1].labels,
                             [&](Label l) { return contains(joined({operands[0].labels, output}), l); });
}

/// Without the dimensions of size 1 that broadcast to something larger elsewhere.
Labelled without_broadcast(const Labelled& t, const std::map<Label, std::int64_t>& extents) {
  Labelled out;
  Shape shape;
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    const std::int64_t size = t.x.shape()[static_cast<int>(i)];
    if (size == 1 && extents.at(t.labels[i]) != 1) continue;
    out.labels.push_back(t.labels[i]);
    shape.push_back(size);
  }
  out.x = reshape(t.x, shape);
  return out;
}

void note_extent(std::map<Label, std::int64_t>& extents, Label l, std::int64_t size, std::string_view equation) {
  const auto [it, fresh] = extents.try_emplace(l, size);
  if (fresh || it->second == size) return;
  const bool broadcasts = l >= first_ellipsis;
  require(broadcasts && (size == 1 || it->second == 1), "einsum: in \"", equation, "\" ",
          broadcasts ? text("dimension ", first_ellipsis - 1 - l, " of `...`") : text("`", static_cast<char>(l), "`"),
          " is ", dimension::to_text(it->second), " in one operand and ", dimension::to_text(size), " in another");
  if (it->second == 1) it->second = size;
}

/// Dimensions under `...` first, then the letters that occur once, in alphabetical order.
Term implied_output(const std::vector<Labelled>& operands) {
  std::map<Label, int> count;
  for (const Labelled& t : operands)
    for (Label l : t.labels) ++count[l];
  Term term{.has_ellipsis = true};
  for (const auto& [l, times] : count)
    if (times == 1 && l < first_ellipsis) term.after.push_back(l);
  return term;
}

void check_output(const Labels& output, const std::map<Label, std::int64_t>& extents, std::string_view equation) {
  for (std::size_t i = 0; i < output.size(); ++i) {
    const char letter = static_cast<char>(output[i]);
    require(extents.contains(output[i]), "einsum: `", letter, "` in the result of \"", equation,
            "\" stands in no operand");
    require(std::find(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i), output[i]) ==
                output.begin() + static_cast<std::ptrdiff_t>(i),
            "einsum: `", letter, "` stands twice in the result of \"", equation, "\"");
  }
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& inputs) {
  const Equation parsed = parse_equation(equation);
  require(parsed.inputs.size() == inputs.size(), "einsum: \"", equation, "\" names ", parsed.inputs.size(),
          " operands, got ", inputs.size());
  std::vector<Labelled> operands;
  std::map<Label, std::int64_t> extents;
  int most_dots = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Term& term = parsed.inputs[k];
    const int letters = static_cast<int>(term.before.size() + term.after.size()), rank = inputs[k].shape().rank();
    require(term.has_ellipsis ? rank >= letters : rank == letters, "einsum: \"", equation, "\" names ", letters,
            " dimensions of operand ", k, ", which is ", inputs[k].spec());
    most_dots = std::max(most_dots, rank - letters);
    operands.push_back({inputs[k], expand(term, rank - letters)});
    for (int i = 0; i < rank; ++i)
      note_extent(extents, operands.back().labels[static_cast<std::size_t>(i)], inputs[k].shape()[i], equation);
  }
  const Labels output = expand(parsed.has_output ? parsed.output : implied_output(operands), most_dots);
  check_output(output, extents, equation);
  for (Labelled& t : operands) t = without_broadcast(without_repetitions(t), extents);
  // Results between several products are not rounded.
  const DType t = operands[0].x.dtype();
  const auto agrees = [t](const Labelled& operand) { return operand.x.dtype() == t; };
  if (!is_one_product(operands, output) && std::ranges::all_of(operands, agrees))
    for (Labelled& operand : operands) operand.x = widened(operand.x);
  while (operands.size() > 1) {
    const auto [i, j] = next_pair(operands, output, extents);
    operands[i] = contract(operands[i], operands[j], labels_beside(operands, i, j, output));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
  }
  return cast(in_order(sum_out(operands[0], output), output).x, t);
}

}  // namespace gradus
