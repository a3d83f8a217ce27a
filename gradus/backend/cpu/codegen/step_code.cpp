#include "gradus/backend/cpu/codegen/step_code.h"
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <unordered_map>
#include "gradus/base/error.h"
#include "gradus/base/thread_pool.h"

namespace gradus::cpu_backend {
namespace {

/// Instructions that take longer to generate than a worker needs to begin: LLVM takes about 10 us an instruction, and 1
/// ms a module.
constexpr std::size_t worth_a_worker = 150;
/// Instructions that are worth a module more than there are workers: with several for each they end at about the same
/// time.
constexpr std::size_t worth_a_module = 400;
constexpr int modules_per_worker = 4;

/// Codes that programs of this process use. An entry ends with the last of them.
class KnownCodes {
 public:
  std::shared_ptr<StepCode> find(const std::string& key) {
    const std::lock_guard lock(guard_);
    const auto found = codes_.find(key);
    return found == codes_.end() ? nullptr : found->second.lock();
  }
  void add(const std::string& key, const std::shared_ptr<StepCode>& code) {
    const std::lock_guard lock(guard_);
    codes_[key] = code;
    if (codes_.size() < sweep_at_) return;
    std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * codes_.size() + 64;
  }

 private:
  std::mutex guard_;
  std::unordered_map<std::string, std::weak_ptr<StepCode>> codes_;
  std::size_t sweep_at_ = 64;
};

KnownCodes& known_codes() {
  static auto* only = new KnownCodes;  // outlives every program
  return *only;
}

}  // namespace

/// Object files of one export are linked together, so kept code has different names in all programs.
std::string StepCodes::new_name() {
  static std::atomic<std::int64_t> kept{0};
  return kept_ != nullptr ? text("gradus_loops_", kept.fetch_add(1)) : text("kernel", names_++);
}

/// The one with the least in it; another one while all have enough in them.
std::size_t StepCodes::pick_module() {
  const auto least = std::ranges::min_element(modules_, {}, &Unit::instructions);
  const int workers = ThreadPool::global().threads();
  const bool is_first = std::ssize(modules_) < workers;
  const bool has_room = workers > 1 && std::ssize(modules_) < modules_per_worker * workers;
  const std::size_t enough = is_first ? worth_a_worker : worth_a_module;
  if (least != modules_.end() && (!has_room || least->instructions < enough))
    return static_cast<std::size_t>(least - modules_.begin());
  Unit& unit = modules_.emplace_back();
  unit.module = new_module(*unit.context, isa_);
  return modules_.size() - 1;
}

StepCode& StepCodes::find_or_add(const std::string& structure, std::vector<AnyOp> ops) {
  std::string key = std::string(name(isa_)) + ' ' + structure;
  if (!shares_ && kept_ == nullptr) key += text(" alone ", codes_.size());
  std::shared_ptr<StepCode>& code = codes_[key];
  if (!code && shares_) code = known_codes().find(key);
  if (!code) {
    code = std::make_shared<StepCode>(StepCode{.ops = std::move(ops), .module = pick_module()});
    added_.emplace_back(key, code);
  }
  return *code;
}

void StepCodes::add_part(StepCode& code, StepCode::Part part) {
  Unit& unit = modules_[code.module];
  unit.instructions += unit.module->getFunction(part.name)->getInstructionCount();
  code.parts.push_back(std::move(part));
}

void StepCodes::finish() {
  std::erase_if(added_, [](const auto& entry) { return entry.second->parts.empty(); });  // nothing to write
  std::vector<Unit*> longest_first;
  for (Unit& unit : modules_)
    if (!unit.module->empty()) longest_first.push_back(&unit);
  std::ranges::stable_sort(longest_first, std::ranges::greater(), &Unit::instructions);
  std::atomic<std::size_t> next{0};
  const auto generate_all = [&](int, int) {
    for (std::size_t k; (k = next.fetch_add(1)) < longest_first.size();)
      longest_first[k]->code =
          generate(*longest_first[k]->module, isa_, kept_ != nullptr ? &longest_first[k]->object : nullptr);
  };
  if (longest_first.size() < 2) generate_all(0, 1);
  else ThreadPool::global().run(static_cast<int>(longest_first.size()), generate_all, {.claims = true});
  for (const auto& [key, code] : added_) {
    code->code = modules_[code->module].code;
    for (StepCode::Part& part : code->parts) {
      part.run = reinterpret_cast<KernelFunction>(code->code->address(part.name));
      if (kept_ != nullptr) kept_->names[part.run] = part.name;
    }
    if (shares_) known_codes().add(key, code);
  }
  if (kept_ != nullptr)
    for (Unit* unit : longest_first) kept_->objects.push_back(std::move(unit->object));
  modules_.clear();
}

std::shared_ptr<const void> StepCodes::owner() const {
  std::vector<std::shared_ptr<const StepCode>> all;
  for (const auto& [key, code] : codes_) all.push_back(code);
  return std::make_shared<const std::vector<std::shared_ptr<const StepCode>>>(std::move(all));
}

std::size_t StepCodes::bytes() const {
  std::set<const MachineCode*> counted;
  std::size_t bytes = 0;
  for (const auto& [key, code] : codes_)
    if (code->code && counted.insert(code->code.get()).second) bytes += code->code->bytes();
  return bytes;
}

}  // namespace gradus::cpu_backend
