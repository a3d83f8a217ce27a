/// Checks of the operands of branches and loops. Attributes may come from a text: nothing is taken for granted.
#include "gradus/ops/control_ops.h"
#include "gradus/base/numbered.h"
#include "gradus/graph/extents.h"

namespace gradus {
namespace {

const bool control_has_extents = Extents::are<Scan>(&Scan::iterations);

Spec stacked_spec(std::int64_t n, Spec spec) {
  spec.shape.insert(0, n);
  return spec;
}

/// `spec` with `rows` as its first dimension.
Spec of_rows(std::string_view op, Spec spec, std::int64_t rows) {
  require(spec.shape.rank() > 0, op, ": what it takes by rows is a scalar, ", spec);
  spec.shape.set(0, rows);
  return spec;
}

void check_input(std::string_view op, const Region& region, std::size_t i, const Spec& expected) {
  require(region.input(i) == expected, op, ": input ", i, " of its region is ", region.input(i), ", expected ",
          expected);
}
void check_output(std::string_view op, const Region& region, std::size_t i, const Spec& expected) {
  require(region.output(i) == expected, op, ": output ", i, " of its region is ", region.output(i), ", expected ",
          expected);
}

/// The specs that a body of a scan has to have if a chunk has `rows` rows.
void check_body(const Scan& scan, const Region& body, Specs in, std::int64_t rows) {
  const int first = scan.first_carry();
  require(body.inputs() == in.size() - at(first) && body.outputs() == scan.body.outputs(),
          "scan: its regions have other numbers of inputs or outputs than it has operands and results");
  for (int i = first; i < static_cast<int>(in.size()); ++i) {
    Spec expected = in[at(i)];
    if (i >= scan.first_single() && i < scan.first_chunk()) {
      require(expected.shape.rank() > 0 && expected.shape[0] == scan.iterations, "scan: operand ", i, ", ", expected,
              ", has not one element for each of ", dimension::to_text(scan.iterations), " iterations");
      expected.shape.erase(0);
    } else if (i >= scan.first_chunk() && i < scan.first_whole()) {
      require(expected.shape.rank() > 0 && expected.shape[0] == scan.total_rows(), "scan: operand ", i, ", ", expected,
              ", has not ", scan.total_rows(), " rows");
      expected.shape.set(0, rows);
    }
    check_input("scan", body, at(i - first), expected);
  }
  for (int k = 0; k < scan.carries; ++k) check_output("scan", body, at(k), in[at(first + k)]);
  for (std::size_t k = at(scan.carries + scan.stacked); k < body.outputs(); ++k)
    check_output("scan", body, k, of_rows("scan", scan.body.output(k), rows));
}

void check_counts(const Scan& scan, Specs in) {
  const auto count = static_cast<int>(in.size());
  const auto fits = [&](int n) { return n >= 0 && n <= count; };
  require(scan.body && fits(scan.carries) && fits(scan.singles) && fits(scan.chunks) && scan.stacked >= 0 &&
              scan.first_whole() <= count && at(scan.carries) <= scan.body.outputs() &&
              at(scan.stacked) <= scan.body.outputs() - at(scan.carries),
          "scan: its regions do not fit together with ", count, " operands");
  const bool by_rows = scan.chunks > 0 || scan.body.outputs() > at(scan.carries + scan.stacked);
  require(scan.iterations >= 0 || (!by_rows && dimension::is_symbolic(scan.iterations)),
          "scan: the number of iterations has to be known");
  require(!by_rows || (scan.rows > 0 && scan.last_rows > 0 && scan.last_rows <= scan.rows &&
                       (scan.last || scan.last_rows == scan.rows)),
          "scan: the numbers of rows do not fit together");
  require(!scan.last || (scan.iterations > 0 && !scan.counted), "scan: there is no last iteration");
  require(!scan.counted || in[0] == Spec{i64, {}}, "scan: the count is one i64, got ", in[0]);
  require(scan.output >= 0 && scan.output < scan.outputs(), "scan: there is no output ", scan.output);
}

}  // namespace

Spec Cond::infer(Specs in) const {
  require(if_true && if_false && in.size() == if_true.inputs() + 1 && in.size() == if_false.inputs() + 1 &&
              if_true.outputs() == if_false.outputs(),
          "cond: its regions do not fit together");
  require(in[0] == Spec{boolean, {}}, "cond: the predicate is one bool, got ", in[0]);
  for (const Region* region : {&if_true, &if_false})
    for (std::size_t i = 1; i < in.size(); ++i) check_input("cond", *region, i - 1, in[i]);
  for (std::size_t k = 0; k < if_true.outputs(); ++k) check_output("cond", if_false, k, if_true.output(k));
  require(output >= 0 && output < outputs(), "cond: there is no output ", output);
  return if_true.output(at(output));
}

std::int64_t Scan::total_rows() const {
  return iterations <= 0 ? 0 : dimension::add(dimension::multiply(iterations - 1, rows), last_rows);
}

Spec Scan::infer(Specs in) const {
  check_counts(*this, in);
  check_body(*this, body, in, rows);
  if (last) check_body(*this, last, in, last_rows);
  const auto results = static_cast<int>(body.outputs());
  if (output < carries) return body.output(at(output));
  if (output < carries + stacked) return stacked_spec(iterations, body.output(at(output)));
  if (output < results) return of_rows("scan", body.output(at(output)), total_rows());
  return stacked_spec(iterations, body.output(at(output - results)));
}

Spec While::infer(Specs in) const {
  require(condition && body && carries >= 0 && at(carries) <= in.size() && condition.inputs() == in.size() &&
              body.inputs() == in.size() && condition.outputs() == 1 && body.outputs() == at(carries) &&
              max_iterations >= 0,
          "while: its regions do not fit together");
  for (std::size_t i = 0; i < in.size(); ++i) {
    check_input("while", condition, i, in[i]);
    check_input("while", body, i, in[i]);
  }
  check_output("while", condition, 0, {boolean, {}});
  for (int k = 0; k < carries; ++k) check_output("while", body, at(k), in[at(k)]);
  require(output >= 0 && output < outputs(), "while: there is no output ", output);
  if (output < carries) return in[at(output)];
  if (output == carries) return {i64, {}};
  return stacked_spec(max_iterations, in[at(output - carries - 1)]);
}

}  // namespace gradus
