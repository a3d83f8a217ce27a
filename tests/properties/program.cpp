/// Running, printing and shrinking of programs.
#include "tests/properties/program.h"
#include <algorithm>
#include "gradus/base/print.h"

namespace gradus::properties {

Tensors Program::arguments() const {
  Tensors result;
  for (const Step& step : steps)
    if (!step.apply) result.push_back(rows::to_tensor(step.value, step.dtype));
  return result;
}

std::vector<bool> Program::are_floats() const {
  std::vector<bool> result;
  for (const Step& step : steps)
    if (!step.apply) result.push_back(is_floating(step.dtype));
  return result;
}

Tensors Program::operator()(In arguments) const {
  Tensors values, results;
  std::size_t next = 0;
  for (const Step& step : steps) {
    if (!step.apply) {
      values.push_back(arguments[next++]);
      continue;
    }
    Tensors operands;
    for (int i : step.in) operands.push_back(values[static_cast<std::size_t>(i)]);
    values.push_back(step.apply(operands));
  }
  for (int i : outputs) results.push_back(values[static_cast<std::size_t>(i)]);
  return results;
}

int Program::length() const {
  return static_cast<int>(std::ranges::count_if(steps, [](const Step& step) { return static_cast<bool>(step.apply); }));
}

Program pruned(const Program& program) {
  const std::size_t n = program.steps.size();
  std::vector<bool> needed(n);
  for (int i : program.outputs) needed[static_cast<std::size_t>(i)] = true;
  for (std::size_t k = n; k-- > 0;)
    if (needed[k])
      for (int i : program.steps[k].in) needed[static_cast<std::size_t>(i)] = true;
  Program result{program.seed, {}, {}};
  std::vector<int> places(n, -1);
  for (std::size_t k = 0; k < n; ++k) {
    if (!needed[k]) continue;
    places[k] = static_cast<int>(result.steps.size());
    result.steps.push_back(program.steps[k]);
    for (int& i : result.steps.back().in) i = places[static_cast<std::size_t>(i)];
  }
  for (int i : program.outputs) result.outputs.push_back(places[static_cast<std::size_t>(i)]);
  return result;
}

namespace {

/// Programs a little smaller than this one, the smallest first.
std::vector<Program> smaller(const Program& program) {
  std::vector<Program> all;
  const int n = static_cast<int>(program.steps.size());
  for (int k = 0; k < n; ++k) {
    if (!program.step(k).apply || !is_floating(program.step(k).dtype)) continue;
    Program ends_here = program;
    ends_here.outputs = {k};
    all.push_back(pruned(ends_here));
  }
  for (int k = n - 1; k >= 0; --k) {
    if (!program.step(k).apply) continue;
    Program cut = program;
    Step& step = cut.steps[static_cast<std::size_t>(k)];
    step.what = "value of " + step.what, step.apply = {}, step.in = {};
    all.push_back(pruned(cut));
  }
  for (std::size_t k = 0; k < program.outputs.size() && program.outputs.size() > 1; ++k) {
    Program fewer = program;
    fewer.outputs.erase(fewer.outputs.begin() + static_cast<std::ptrdiff_t>(k));
    all.push_back(pruned(fewer));
  }
  const auto size = [](const Program& p) { return p.length() * 100 + static_cast<int>(p.outputs.size()); };
  std::erase_if(all, [&](const Program& p) { return p.length() == 0 || size(p) >= size(program); });
  std::ranges::stable_sort(all, {}, size);
  return all;
}

}  // namespace

Program shrunk(Program program, const std::function<bool(const Program&)>& fails) {
  for (;;) {
    const std::vector<Program> candidates = smaller(program);
    const auto found = std::ranges::find_if(candidates, fails);
    if (found == candidates.end()) return program;
    program = *found;
  }
}

std::ostream& operator<<(std::ostream& out, const Program& program) {
  out << "program of seed " << program.seed << ":\n";
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const Step& step = program.steps[k];
    out << "  %" << k << " = " << (step.apply ? "" : "input: ") << step.what;
    for (std::size_t i = 0; i < step.in.size(); ++i) out << (i ? ", %" : " (%") << step.in[i];
    out << (step.in.empty() ? " : " : ") : ") << Spec{step.dtype, step.value.shape};
    if (!step.apply && step.value.values.size() <= 12) {
      out.precision(17);
      for (double x : step.value.values) out << ' ' << x;
    }
    out << '\n';
  }
  out << "  yields";
  for (int i : program.outputs) out << " %" << i;
  return out << '\n';
}

}  // namespace gradus::properties
