/// Subscripts against NumPy's: numpy/subscripts.txt has the places that each of subscript_rows.h reads, from which
/// follow values, gradients and assignments. And what is refused.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/ops/subscript_rows.h"
#include "tests/peak_memory.h"

/// A function of the program with a name of a subscript.
static bool all(const std::vector<bool>& values) { return std::ranges::find(values, false) == values.end(); }

TEST(Subscripts, NamesStandBesideOthersOfTheirName) {
  using namespace gradus;
  using namespace std;  // which has an `end`, too
  const Tensor x = reshape(gradus::range(12), {3, 4});
  const std::vector<std::int32_t> last = x(all, slice(2, end)).to_vector<std::int32_t>();
  EXPECT_EQ(last, (std::vector<std::int32_t>{2, 3, 6, 7, 10, 11}));
  EXPECT_TRUE(all({*begin(last) == 2, *(end(last) - 1) == 11}));
}

namespace gradus::rows::subscripts_test {
namespace {

struct Reading {
  Shape shape;
  std::vector<std::int64_t> places;  // of each element of the result within x
};

template <class T> std::vector<T> numbers_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<T> numbers;
  for (T number; in >> number;) numbers.push_back(number);
  return numbers;
}

/// By subscript.
std::map<std::string, Reading> readings() {
  std::ifstream file(std::filesystem::path(GRADUS_TENSORFLOW_FOLDER).parent_path() / "numpy" / "subscripts.txt");
  std::map<std::string, Reading> all_readings;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(" | "), second = line.find(" |", first + 3);
    const auto shape = numbers_of<std::int64_t>(line.substr(first + 3, second - first - 3));
    all_readings[line.substr(0, first)] = {Shape(shape), numbers_of<std::int64_t>(line.substr(second + 2))};
  }
  return all_readings;
}

Subscript at(const Subscripts& s, std::size_t i) { return i < s.size() ? s[i] : Subscript(); }
auto subscripted(const auto& x, const Subscripts& s) {
  return x(at(s, 0), at(s, 1), at(s, 2), at(s, 3), at(s, 4), at(s, 5), at(s, 6), at(s, 7));
}

const Shape shape_of_x{3, 4, 5};
constexpr std::int64_t size_of_x = 60;
Tensor counted(int first = 0) { return cast(reshape(range(size_of_x), shape_of_x), f32) + first; }

/// 1, 2 ... 7, 1, 2 ...: a weight for each element of a result.
std::vector<float> weights_of(const Reading& reading) {
  std::vector<float> weights;
  for (std::size_t i = 0; i < reading.places.size(); ++i) weights.push_back(static_cast<float>(i % 7 + 1));
  return weights;
}

/// The weights, added up at their places.
std::vector<float> added_up(const Reading& reading, std::vector<float> sums = std::vector<float>(size_of_x)) {
  const std::vector<float> weights = weights_of(reading);
  for (std::size_t i = 0; i < weights.size(); ++i) sums[static_cast<std::size_t>(reading.places[i])] += weights[i];
  return sums;
}

std::vector<float> values_of(const Reading& reading, int first = 0) {
  std::vector<float> values;
  for (const std::int64_t place : reading.places) values.push_back(static_cast<float>(place + first));
  return values;
}

TEST(Subscripts, ReadAsNumPyReads) {
  const SubscriptTensors t;
  const auto known = readings();
  const auto rows = subscript_rows(t);
  ASSERT_EQ(rows.size(), known.size());
  for (const auto& row : rows) {
    const Subscripts& subscripts = row.second;
    SCOPED_TRACE("x[" + row.first + "]");
    const Reading& reading = known.at(row.first);
    const Tensor x = counted(), y = subscripted(x, subscripts);
    EXPECT_EQ(y.shape(), reading.shape);
    EXPECT_EQ(y.to_vector<float>(), values_of(reading));
    const Tensor weights = from_values(weights_of(reading), reading.shape);
    const auto loss = [&](const Tensor& a) { return reduce_sum(subscripted(a, subscripts) * weights); };
    EXPECT_EQ(gradient(loss, x).to_vector<float>(), added_up(reading));
    const auto square_loss = [&](const Tensor& a) { return reduce_sum(gradient(loss, a) * a); };
    EXPECT_EQ(gradient(square_loss, x).to_vector<float>(), added_up(reading)) << "second order";
  }
}

/// All readings one after the other.
struct AllReadings {
  std::vector<std::pair<std::string, Subscripts>> rows = subscript_rows(SubscriptTensors());
  Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> parts;
    for (const auto& row : rows) parts.push_back(reshape(subscripted(x, row.second), {-1}));
    return concat(parts);
  }
  std::vector<float> expected(int first = 0) const {
    std::vector<float> values;
    for (const auto& row : rows) {
      const std::vector<float> more = values_of(readings().at(row.first), first);
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }
};

TEST(Subscripts, AreTheSameCompiled) {
  const AllReadings read;
  auto compiled = function([&](Tensor x) { return read(x); });
  for (int call = 0; call < 3; ++call)
    EXPECT_EQ(compiled(counted(call)).to_vector<float>(), read.expected(call)) << "call " << call;
}

TEST(Subscripts, GoRowByRowUnderVectorizedMap) {
  const AllReadings read;
  const Tensor y = vectorized_map([&](Tensor x) { return read(x); }, stack({counted(), counted(100)}));
  EXPECT_EQ(y[0].to_vector<float>(), read.expected());
  EXPECT_EQ(y[1].to_vector<float>(), read.expected(100));
}

TEST(Subscripts, EachRowMayHaveIndicesOfItsOwn) {
  const Tensor x = counted(), indices = constant({{0, -1}, {2, 1}, {-4, 3}});  // for the rows of x: [4, 5]
  const Tensor y = vectorized_map([&](Tensor row) { return x(all, row, slice(1, 3)); }, indices);
  ASSERT_EQ(y.shape(), (Shape{3, 3, 2, 2}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bitwise_equal(y[i], x(all, indices[i], slice(1, 3)))) << i;
}

TEST(Subscripts, GoThroughOpenSizes) {
  auto f = function([](Tensor x) { return x(slice(1, end), -1) + x(slice(0, x.size(0) - 1), 0) + x(x.size(0) / 2, 1); },
                    {.input_signature = {{f32, {any_size, 3}}}});
  for (const int rows : {2, 5, 9}) {
    const Tensor x = reshape(cast(range(rows * 3), f32), {rows, 3});
    const Tensor expected = x(slice(1, end), 2) + x(slice(0, rows - 1), 0) + x(rows / 2, 1);
    EXPECT_TRUE(bitwise_equal(f(x), expected)) << rows;
  }
  auto tail = function([](Tensor x) { return x(slice(3, end)); }, {.input_signature = {{f32, {any_size}}}});
  EXPECT_EQ(tail(ones({4})).shape(), Shape{1});
  EXPECT_EQ(tail(ones({2})).shape(), Shape{0});  // clamped, in a trace of its own
}

/// The elements of x after an assignment: `next` of the element and the weight.
std::vector<float> assigned(const Reading& reading, auto next) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < size_of_x; ++i) values.push_back(static_cast<float>(i));
  const std::vector<float> weights = weights_of(reading);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float& place = values[static_cast<std::size_t>(reading.places[i])];
    place = next(place, weights[i]);
  }
  return values;
}

TEST(VariableElements, AreAssignedAsNumPyDoes) {
  const auto known = readings();
  for (const auto& [name, subscripts] : subscript_rows(SubscriptTensors())) {
    SCOPED_TRACE("x[" + name + "]");
    const Reading& reading = known.at(name);
    const Tensor weights = from_values(weights_of(reading), reading.shape);
    Variable v(counted());
    subscripted(v, subscripts).assign(weights);
    EXPECT_EQ(v.value().to_vector<float>(), assigned(reading, [](float, float w) { return w; }));
    v.assign(counted());
    subscripted(v, subscripts).assign_add(weights);
    EXPECT_EQ(v.value().to_vector<float>(), assigned(reading, [](float x, float w) { return x + w; }));
    v.assign(counted());
    subscripted(v, subscripts).assign_sub(weights);
    EXPECT_EQ(v.value().to_vector<float>(), assigned(reading, [](float x, float w) { return x - w; }));
  }
}

TEST(VariableElements, AreTheSameCompiled) {
  const auto rows = subscript_rows(SubscriptTensors());
  const auto known = readings();
  std::vector<float> expected(size_of_x);
  for (const auto& [name, subscripts] : rows) expected = added_up(known.at(name), expected);
  Variable v(zeros(shape_of_x)), w(zeros(shape_of_x));
  auto step = function([&] {
    for (const auto& [name, subscripts] : rows) {
      const Tensor weights = from_values(weights_of(known.at(name)), known.at(name).shape);
      subscripted(v, subscripts).assign_add(weights);
      subscripted(w, subscripts).assign(Tensor(subscripted(w, subscripts)) * 0 + 1);
    }
  });
  for (int call = 1; call <= 2; ++call) {
    step();
    std::vector<float> sums;
    for (const float sum : expected) sums.push_back(sum * static_cast<float>(call));
    EXPECT_EQ(v.value().to_vector<float>(), sums) << "call " << call;
    EXPECT_EQ(w.value().to_vector<float>(), std::vector<float>(size_of_x, 1)) << "call " << call;
  }
}

TEST(VariableElements, TakeNumbersAndWhatBroadcasts) {
  Variable v(counted(), "v");
  v(1).assign(7);
  v(all, 2, slice(1, end)).assign(constant({1.0, 2.0, 3.0, 4.0}));
  v(0, 0).assign_add(0.5);
  v(0, 0, 0).assign_sub(10);
  const Tensor x = v.value();
  EXPECT_EQ(Tensor(v(1, 0)).to_vector<float>(), std::vector<float>(5, 7));
  EXPECT_EQ(x(2, 2).to_vector<float>(), (std::vector<float>{50, 1, 2, 3, 4}));
  EXPECT_EQ(x(0, 0).to_vector<float>(), (std::vector<float>{-9.5, 1.5, 2.5, 3.5, 4.5}));
  EXPECT_EQ(v.size(-1), 5);
}

TEST(VariableElements, AreWrittenInTheMemoryOfTheVariable) {
  Variable v(zeros({64, 1024, 16}));  // 4 MiB
  const auto expect_in_place = [](const auto& write) {
    auto step = function(write);
    const Tensor places = constant({3, 70, 1000});
    step(places), step(places);
    EXPECT_LT(peak_of([&] { step(places); }), std::size_t{1} << 20);
  };
  expect_in_place([&](Tensor) { v(5, slice(7, 9)).assign(ones({2, 16})); });
  expect_in_place([&](Tensor) { v(all, 11).assign(1); });
  expect_in_place([&](Tensor at) { v(-1, at).assign_add(ones({3, 16})); });
  expect_in_place([&](Tensor) { v(2, all, 3).assign_sub(1); });
  EXPECT_EQ(reduce_sum(v.value()).item(), 2 * 16 + 64 * 16 + 3 * 3 * 16 - 3 * 1024);
}

TEST(VariableElements, HaveGradients) {
  Variable v(counted());
  GradientTape tape;
  const Tensor row = v(1, 2), y = reduce_sum(row * row);
  EXPECT_EQ(tape.gradient(y, v)(1, 2).to_vector<float>(), (2 * row).to_vector<float>());
}

TEST(VariableElements, KeepTheirValueIfAPlaceIsOutside) {
  Variable v(counted(), "v");
  EXPECT_THROW(
      {
        v(constant({0, 3})).assign(1);
        v.value().observed();
      },
      OutOfRange);
  EXPECT_TRUE(bitwise_equal(v, counted()));
  Tensor places = constant({0, 1});
  auto step = function([&](Tensor at) { v(at, 0).assign_add(1); });
  step(places);
  EXPECT_THROW(
      {
        step(constant({-4, 1}));
        synchronize();
      },
      OutOfRange);
  EXPECT_EQ(v.value()(all, 0, 0).to_vector<float>(), (std::vector<float>{1, 21, 40}));
}

/// A pointer that is computed from `end`, as by end - 1, which g++ takes with a warning.
detail::End no_end() { return {}; }

TEST(Subscripts, SayWhatIsWrong) {
  const Tensor x = zeros({3, 4}), floats = constant({0.5}), two = constant({0, 1}), three = constant({0, 1, 2});
  const Tensor mask = constant({true, false});
  expect_error<InvalidArgument>([&] { x(0, 0, all); }, {"x(0, 0, all)", "take 3 dimensions", "has 2", "newaxis"});
  expect_error<InvalidArgument>([&] { x(ellipsis, 0, ellipsis); }, {"2 subscripts are ellipsis", "one at most"});
  expect_error<OutOfRange>([&] { x(all, 4); }, {"x(all, 4)", "index 4", "dimension 1", "expected -4 to 3"});
  expect_error<OutOfRange>([&] { x(-4); }, {"index -4", "expected -3 to 2"});
  expect_error<InvalidArgument>([&] { x(slice(0, 2, 0)); }, {"slice(0, 2, 0)", "step", "is 0"});
  expect_error<InvalidArgument>([&] { x(slice(end, 0)); }, {"begins at `end`", "slice(-3, end)"});
  expect_error<InvalidArgument>([&] { x(slice(0, no_end)); }, {"computed from `end`", "slice(0, -1)"});
  expect_error<InvalidArgument>([&] { x(all, floats); }, {"subscript 1 is f32[1]", "integers or booleans", "cast"});
  expect_error<InvalidArgument>([&] { x(two, three); }, {"x(i32[2], i32[3])"});
  expect_error<InvalidArgument>([&] { x(mask); }, {"bool[2]", "dimensions from 0 on of f32[3,4]"});
  expect_error<InvalidArgument>([&] { x(constant(true)); }, {"single boolean", "where("});
  expect_error<InvalidArgument>([&] { x(newaxis, {}, 0); }, {"a subscript is {}"});
  expect_error<InvalidArgument>([&] { x(Tensor()); }, {"empty"});
  expect_error<OutOfRange>([&] { x(constant({0, -4})).observed(); }, {"-4", "3"});
  expect_error<OutOfRange>([&] { x(two, constant({0, 4})).observed(); }, {"4"});
  expect_error<InvalidArgument>([&] { zeros({1, 1, 1, 1, 1, 1, 1, 1})(newaxis); }, {"9 dimensions"});
  expect_error<OutOfRange>([&] { x.size(2); }, {"2"});
  auto traced = function([&](Tensor where_true) { return x(where_true); });
  expect_error<InvalidArgument>([&] { traced(constant({true, false, true})); },
                                {"not known while a function is traced", "where(condition, x, y)"});
  Variable v(zeros({3, 4}), "weights");
  expect_error<InvalidArgument>([&] { v(0).assign(two); },
                                {"weights(0)", "the value is i32[2]", "expected f32", "cast"});
  expect_error<InvalidArgument>([&] { v(0).assign(zeros({3})); }, {"weights(0)", "f32[3]", "f32[4]"});
  expect_error<InvalidArgument>([&] { v(0).assign(zeros({1, 1, 4})); }, {"does not broadcast", "f32[4]"});
  expect_error<OutOfRange>([&] { v(3).assign(1); }, {"weights(3)", "expected -3 to 2"});
}

TEST(Extents, AreComputedWith) {
  const Tensor x = zeros({5, 3});
  EXPECT_EQ(x.size(0), 5);
  EXPECT_EQ(x.size(-1) * 2 + 1, 7);
  EXPECT_EQ(x.size(0) - 7, -2);
  EXPECT_EQ(x.size(0) / 2, 2);
  EXPECT_EQ(x.size(0) % 3, 2);
  EXPECT_EQ(10 - x.size(0), 5);
  EXPECT_LT(x.size(1), x.size(0));
  EXPECT_EQ(zeros({x.size(0), 2}).shape(), (Shape{5, 2}));
  EXPECT_EQ(text(x.size(0) - 7), "-2");
  auto compares = function([](Tensor a) { return a.size(0) > 3 ? a : -a; }, {.input_signature = {{f32, {any_size}}}});
  EXPECT_EQ(compares(ones({4}))[0].item(), 1);  // each size has a trace of its own, since the answer depends on it
  EXPECT_EQ(compares(ones({3}))[0].item(), -1);
  auto always = function([](Tensor a) { return a.size(0) + 1 > 0 ? a : -a; }, {.input_signature = {{f32, {any_size}}}});
  EXPECT_EQ(always(ones({1})).item(), 1);
}

}  // namespace
}  // namespace gradus::rows::subscripts_test
