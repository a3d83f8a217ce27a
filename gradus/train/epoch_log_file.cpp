/// Logs with one line per epoch. A file is kept as a whole in memory and replaced at each epoch, so it is whole at any
/// moment.
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include "gradus/base/input_file.h"
#include "gradus/base/lines.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/result_table.h"

namespace gradus {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

/// The figures of one epoch, besides its number.
Numbers numbers_of(const EpochLog& log) {
  Numbers numbers{{"loss", log.loss}};
  constexpr double no_number = std::numeric_limits<double>::quiet_NaN();  // so that all lines have the same columns
  if (log.validation_loss || !log.absent.empty())
    numbers.emplace_back("validation_loss", log.validation_loss.value_or(no_number));
  numbers.insert(numbers.end(), log.metrics.begin(), log.metrics.end());
  for (const std::string& name : log.absent)
    if (name != "validation_loss") numbers.emplace_back(name, no_number);
  numbers.emplace_back("learning_rate", log.optimizer.learning_rate());
  numbers.emplace_back("seconds", log.seconds);
  return numbers;
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return lines;
  const std::string all = read_text_file(file);
  for (std::string_view rest = all; !rest.empty();) lines.emplace_back(take_line(rest));
  return lines;
}

/// How a log writes its lines.
class Form {
 public:
  virtual ~Form() = default;
  /// The first line; empty if there is none.
  virtual std::string head(const Numbers& numbers) const = 0;
  virtual std::string line(int epoch, const Numbers& numbers) const = 0;
  /// The epoch of a line; nothing if it is not one of this form.
  virtual std::optional<int> epoch_of(const std::string& line) const = 0;
};

class Csv : public Form {
 public:
  explicit Csv(char separator) : separator_(separator) {}
  std::string head(const Numbers& numbers) const override {
    std::string line = "epoch";
    for (const auto& [name, value] : numbers) line += separator_ + quoted(name);
    return line;
  }
  std::string line(int epoch, const Numbers& numbers) const override {
    std::string line = std::to_string(epoch);
    for (const auto& [name, value] : numbers) line += separator_ + exact_text(value);
    return line;
  }
  std::optional<int> epoch_of(const std::string& line) const override {
    int epoch = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), epoch);
    if (problem != std::errc() || end == line.data() + line.size() || *end != separator_) return {};
    return epoch;
  }

 private:
  std::string quoted(const std::string& name) const {
    if (name.find_first_of(std::string("\"\n") + separator_) == std::string::npos) return name;
    std::string out = "\"";
    for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + '"';
  }
  char separator_;
};

class JsonLines : public Form {
 public:
  std::string head(const Numbers&) const override { return {}; }
  std::string line(int epoch, const Numbers& numbers) const override {
    nlohmann::ordered_json line{{"epoch", epoch}};
    for (const auto& [name, value] : numbers) line[name] = value;
    return line.dump();
  }
  std::optional<int> epoch_of(const std::string& line) const override {
    const auto parsed = json_if_any(line);
    if (!parsed.is_object() || !parsed.contains("epoch") || !parsed["epoch"].is_number_integer()) return {};
    return parsed["epoch"].get<int>();
  }
};

class EpochLogFile {
 public:
  EpochLogFile(std::filesystem::path file, std::unique_ptr<const Form> form)
      : file_(std::move(file)), form_(std::move(form)) {}

  void on_train_begin(const TrainBegin& log) {
    writes_ = !log.fast_dev_run;
    begun_ = false;
  }

  void on_epoch_begin(const EpochBegin& log) {
    if (std::exchange(begun_, true) || !writes_) return;
    lines_.clear();
    if (log.epoch > 0) keep_lines_before(log.epoch);
  }

  void on_epoch_end(const EpochLog& log) {
    if (!writes_) return;
    const Numbers numbers = numbers_of(log);
    if (lines_.empty())
      if (std::string head = form_->head(numbers); !head.empty()) lines_.push_back(std::move(head));
    lines_.push_back(form_->line(log.epoch, numbers));
    AtomicFile out(file_);
    for (const std::string& line : lines_) out.write(line + '\n');
    out.commit();
  }

 private:
  void keep_lines_before(int epoch) {
    for (std::string& line : lines_of(file_)) {
      const auto of = form_->epoch_of(line);
      const bool is_head = !of && lines_.empty() && line.starts_with("epoch");
      require<DataError>(of || is_head, file_.string(), ": line ", lines_.size() + 1,
                         " was not written by this kind of log: `", line.substr(0, 40), "`; take another file");
      if (is_head || *of < epoch) lines_.push_back(std::move(line));
    }
  }

  std::filesystem::path file_;
  std::unique_ptr<const Form> form_;
  std::vector<std::string> lines_;
  bool writes_ = true, begun_ = false;
};

Callback log_to(const std::filesystem::path& file, std::unique_ptr<const Form> form) {
  const auto state = std::make_shared<EpochLogFile>(file, std::move(form));
  return {.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); },
          .on_train_begin = [state](const TrainBegin& log) { state->on_train_begin(log); },
          .on_epoch_begin = [state](const EpochBegin& log) { state->on_epoch_begin(log); }};
}

}  // namespace

Callback csv_logger(const std::filesystem::path& file, char separator) {
  require(std::string_view("0123456789+-.einfa\"\n\r").find(separator) == std::string_view::npos, "csv_logger: `",
          separator, "` cannot separate numbers; take a comma, a semicolon or a tab");
  return log_to(file, std::make_unique<Csv>(separator));
}

Callback json_lines_logger(const std::filesystem::path& file) { return log_to(file, std::make_unique<JsonLines>()); }

}  // namespace gradus
