/// gradus_bench_texts PLUGIN TEXT TEXT: two texts of StableHLO, each a training step, in one plugin. They are compiled
/// and run by turns, so that a disturbance hits both alike. Prints what each takes as a line of JSON.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include "gradus/backend/xla/client_options.h"
#include "gradus/base/clock.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

constexpr int compilations = 9, turns = 15;
constexpr double seconds_of_turn = 0.3;

std::string contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  require<Unavailable>(file.good(), path, ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An argument of `main`.
struct Argument {
  Spec spec;
  std::optional<std::size_t> becomes;  // the result that takes its memory
};

/// What the line of `main` says.
struct Signature {
  std::vector<Argument> arguments;
  std::size_t results = 0;

  explicit Signature(std::string_view text) {
    const std::size_t begin = text.find("@main("), results_begin = text.find(") -> ", begin);
    require(begin != text.npos && results_begin != text.npos, "a text without `func.func public @main(...) -> ...`");
    const std::string_view given = text.substr(begin, results_begin - begin);
    const std::string_view line = text.substr(results_begin, text.find("{\n", results_begin) - results_begin);
    for (std::size_t at = line.find("tensor<"); at != line.npos; at = line.find("tensor<", at + 1)) ++results;
    for (std::size_t at = given.find("tensor<"); at != given.npos;) {
      const std::size_t next = given.find("tensor<", at + 1);
      arguments.push_back(argument(given.substr(at, next - at)));
      at = next;
    }
  }

 private:
  static std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  /// "tensor<784x128xf32> {tf.aliasing_output = 1 : i32}, %arg2: "
  static Argument argument(std::string_view text) {
    static const std::map<std::string_view, DType> types{{"f32", f32},    {"f64", f64},  {"bf16", bf16}, {"f16", f16},
                                                         {"i1", boolean}, {"i8", i8},    {"ui8", u8},    {"i16", i16},
                                                         {"i32", i32},    {"ui32", u32}, {"i64", i64},   {"ui64", u64}};
    std::string_view type = text.substr(7, text.find('>') - 7);
    std::vector<std::int64_t> extents;
    for (std::size_t end = type.find('x'); end != type.npos; end = type.find('x')) {
      extents.push_back(number(type.substr(0, end)));
      type.remove_prefix(end + 1);
    }
    const auto known = types.find(type);
    require(known != types.end(), "a tensor of ", type, ", which this bench does not make");
    Argument made{{known->second, Shape(extents)}, {}};
    constexpr std::string_view alias = "tf.aliasing_output = ";
    if (const std::size_t at = text.find(alias); at != text.npos)
      made.becomes = static_cast<std::size_t>(number(text.substr(at + alias.size())));
    return made;
  }
};

/// Positive numbers below 0.05; integers of 32 bits count to 9, others are 0.
std::vector<std::byte> values(const Spec& spec, std::mt19937& engine) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(spec)));
  const auto fill = [&]<class T>(T, const auto& each) {
    for (std::size_t k = 0; k < bytes.size() / sizeof(T); ++k) {
      const T value = static_cast<T>(each(k));
      std::memcpy(bytes.data() + k * sizeof(T), &value, sizeof(T));
    }
  };
  std::uniform_real_distribution<float> uniform(0.F, 0.05F);
  if (spec.dtype == f32) fill(float{}, [&](std::size_t) { return uniform(engine); });
  else if (spec.dtype == f64) fill(double{}, [&](std::size_t) { return uniform(engine); });
  else if (spec.dtype == i32) fill(std::int32_t{}, [&](std::size_t k) { return spec.shape.rank() > 0 ? k % 10 : 0; });
  return bytes;
}

/// A step whose results become its arguments.
class Step {
 public:
  Step(const pjrt::Session& session, const char* path)
      : session_(session), name_(path), text_(contents(path)), signature_(text_) {
    std::mt19937 engine(1);
    for (const Argument& argument : signature_.arguments) {
      const std::vector<std::byte> data = values(argument.spec, engine);
      pjrt::EventOwner done;
      arguments_.push_back(session.upload(session.devices()[0], argument.spec, data.data(), done));
      done.wait();
    }
  }

  /// The first time does not count: the plugin does then what it does once.
  void compile() {
    const double begin = steady_seconds();
    const int device = session_.id_of(session_.devices()[0]);
    const bool is_first = !loaded_;
    loaded_ = session_.compile(text_, pjrt::compile_options({&device, 1}));
    if (!is_first) compile_seconds_.push_back(steady_seconds() - begin);
  }

  void run_for(double seconds) {
    for (const double end = steady_seconds() + seconds; steady_seconds() < end;) {
      const double begin = steady_seconds();
      run();
      step_seconds_.push_back(steady_seconds() - begin);
    }
  }
  void run() {
    std::vector<pjrt::Buffer*> given;
    for (const auto& argument : arguments_) given.push_back(argument->get());
    auto results = loaded_->run(given, {}, signature_.results);
    for (const auto& result : results) result->ready().wait();
    for (std::size_t k = 0; k < arguments_.size(); ++k)
      if (signature_.arguments[k].becomes) arguments_[k] = results[*signature_.arguments[k].becomes];
  }

  nlohmann::json found() {
    std::ranges::sort(compile_seconds_);
    std::ranges::sort(step_seconds_);
    return {{"text", name_},
            {"steps", step_seconds_.size()},
            {"median_ms", 1e3 * step_seconds_[step_seconds_.size() / 2]},
            {"min_ms", 1e3 * step_seconds_.front()},
            {"compile_s", compile_seconds_[compile_seconds_.size() / 2]}};
  }

 private:
  const pjrt::Session& session_;
  const std::string name_, text_;
  const Signature signature_;
  std::vector<std::shared_ptr<pjrt::BufferOwner>> arguments_;
  std::unique_ptr<pjrt::Loaded> loaded_;
  std::vector<double> compile_seconds_, step_seconds_;
};

void compare(const char* library, const char* ours, const char* theirs) {
  xla::before_loading("bench", library);
  const pjrt::Plugin plugin("bench", library);
  const auto session = xla::make_session(plugin);
  Step first(*session, ours), second(*session, theirs);
  for (int i = 0; i <= compilations; ++i) first.compile(), second.compile();
  for (int i = 0; i < 3; ++i) first.run(), second.run();
  for (int turn = 0; turn < turns; ++turn) first.run_for(seconds_of_turn), second.run_for(seconds_of_turn);
  std::cout << nlohmann::json{first.found(), second.found()}.dump() << '\n';
}

}  // namespace
}  // namespace gradus

int main(int count, char** given) {
  if (count != 4) {
    std::cerr << "expected: gradus_bench_texts PLUGIN TEXT TEXT\n";
    return 2;
  }
  try {
    gradus::compare(given[1], given[2], given[3]);
  } catch (const std::exception& error) {
    std::cerr << "gradus_bench_texts: " << error.what() << '\n';
    return 1;
  }
}
