/// Characters and windows of a text, and drawing from a model of it.
#include "apps/gradus/text.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include "gradus/base/input_file.h"
#include "gradus/formats/json.h"

namespace gradus::command {
namespace {

/// The characters of a UTF-8 text.
std::vector<std::string> characters_of(const std::string& text, const std::string& source) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    bool whole = bytes > 0 && i + bytes <= text.size();
    for (std::size_t k = 1; whole && k < bytes; ++k) whole = (static_cast<unsigned char>(text[i + k]) >> 6) == 2;
    require<DataError>(whole, source, ": byte ", i, " is no UTF-8 text");
    all.push_back(text.substr(i, bytes));
    i += bytes;
  }
  return all;
}

/// A number below 1 that is the same on every system.
double draw(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

std::int64_t choose(std::span<const float> scores, double temperature, std::mt19937_64& random) {
  const auto best = std::ranges::max_element(scores);
  if (temperature == 0) return best - scores.begin();
  std::vector<double> sums;
  double sum = 0;
  for (const float score : scores) sums.push_back(sum += std::exp((score - *best) / temperature));
  const auto chosen = std::ranges::upper_bound(sums, draw(random) * sum);
  return std::min<std::int64_t>(chosen - sums.begin(), static_cast<std::int64_t>(sums.size()) - 1);
}

}  // namespace

Vocabulary Vocabulary::of_text(const std::string& text, const std::string& source) {
  const std::vector<std::string> all = characters_of(text, source);
  require<DataError>(!all.empty(), source, ": the text is empty");
  const std::set<std::string> distinct(all.begin(), all.end());
  Vocabulary vocabulary;
  vocabulary.characters_.assign(distinct.begin(), distinct.end());
  return vocabulary;
}

Vocabulary Vocabulary::read(const std::filesystem::path& file) {
  const std::string written = read_text_file(file);
  Vocabulary vocabulary;
  try {
    vocabulary.characters_ = parse_json(written, file.string()).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(text(file.string(), ": this is no vocabulary: ", error.what()));
  }
  const auto& characters = vocabulary.characters_;
  const bool ascends = std::ranges::adjacent_find(characters, std::greater_equal<>()) == characters.end();
  require<DataError>(!characters.empty() && ascends, file.string(),
                     ": this is no vocabulary: expected characters, each once, in ascending order");
  return vocabulary;
}

std::string Vocabulary::to_json() const { return nlohmann::json(characters_).dump() + "\n"; }

std::vector<std::int32_t> Vocabulary::encode(const std::string& text, const std::string& source) const {
  std::vector<std::int32_t> numbers;
  for (const std::string& character : characters_of(text, source)) {
    const auto at = std::ranges::lower_bound(characters_, character);
    require<DataError>(at != characters_.end() && *at == character, source, ": the character `", character,
                       "` is not in the vocabulary");
    numbers.push_back(static_cast<std::int32_t>(at - characters_.begin()));
  }
  return numbers;
}

Dataset<2> windows(const std::vector<std::int32_t>& text, std::int64_t length, std::int64_t stride,
                   const std::string& source) {
  const auto size = static_cast<std::int64_t>(text.size());
  require<DataError>(size > length, source, ": the text has ", size, " characters here, a window needs ", length + 1);
  std::vector<std::int32_t> x, y;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin + length < size; begin += stride, ++count) {
    const auto first = text.begin() + begin;
    x.insert(x.end(), first, first + length);
    y.insert(y.end(), first + 1, first + length + 1);
  }
  return data::from_tensor_slices(from_values(x, {count, length}), from_values(y, {count, length}));
}

namespace {

using Numbers = std::vector<std::int32_t>;

/// The last `count` numbers at most.
Numbers last_of(const Numbers& all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end()};
}

/// Goes on by keys and values that are kept. Where the context is full it starts again with the later half of it.
void sample_by_cache(Generator& generator, Numbers seen, const SamplingOptions& options,
                     const std::function<void(std::int64_t)>& write) {
  const auto context = static_cast<std::size_t>(options.context);
  std::uint64_t seed = options.seed;
  for (std::int64_t left = options.characters; left > 0;) {
    if (seen.size() >= context) seen = last_of(seen, std::max<std::size_t>(1, context / 2));
    const auto room = static_cast<std::int64_t>(context - seen.size());
    const Tensor prompt = from_values(seen, {1, static_cast<std::int64_t>(seen.size())});
    const std::int64_t count = std::min(left, std::max<std::int64_t>(1, room));
    generator(prompt, {.max_tokens = count, .temperature = options.temperature, .seed = seed++},
              [&](const Tensor& token) {
                const std::int32_t number = token.to_vector<std::int32_t>()[0];
                write(number);
                seen.push_back(number);
              });
    left -= count;
  }
}

/// Goes on by the scores of the whole window for each character, as of recurrent layers.
void sample_by_windows(const Module& model, Numbers seen, const SamplingOptions& options,
                       const std::function<void(std::int64_t)>& write) {
  std::mt19937_64 random(options.seed);
  const auto context = static_cast<std::size_t>(options.context);
  const auto scores_of = function([&](Tensor x) { return model(x, inference); });
  for (std::int64_t k = 0; k < options.characters; ++k) {
    seen = last_of(seen, context);
    Numbers window = seen;
    window.resize(context, 0);  // places after the last do not count
    const Tensor scores = scores_of(from_values(window, {1, options.context}));
    const Tensor last = scores[0][static_cast<std::int64_t>(seen.size()) - 1];
    const std::int64_t next = choose(last.span<float>(), options.temperature, random);
    write(next);
    seen.push_back(static_cast<std::int32_t>(next));
  }
}

/// A generator of the model; empty if it looks at other places by something else than attention.
std::optional<Generator> generator_of(const Module& model, const SamplingOptions& options) {
  try {
    Generator generator(model, 1, options.context + 1);
    generator(zeros({1, 1}, i32), {.max_tokens = 1, .temperature = 0});
    return generator;
  } catch (const InvalidArgument&) { return {}; }
}

}  // namespace

void sample(const Module& model, const std::vector<std::int32_t>& begin, const SamplingOptions& options,
            const std::function<void(std::int64_t)>& write) {
  if (auto generator = generator_of(model, options)) sample_by_cache(*generator, begin, options, write);
  else sample_by_windows(model, begin, options, write);
}

}  // namespace gradus::command
