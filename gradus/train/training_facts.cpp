/// The table of rules, and how facts are found and compared. Decision 337 has the reasons.
#include "gradus/train/training_facts.h"
#include <algorithm>
#include <charconv>
#include <iomanip>
#include <set>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/nn/layer.h"

namespace gradus {
namespace {

struct RuleRow {
  std::string_view name;
  GoesBy by;
};
/// The rules of facts; the program decides all others.
constexpr RuleRow rules[] = {{"optimizer", GoesBy::both},     {"slots", GoesBy::both},
                             {"loss_scale", GoesBy::both},    {"initial_accumulator_value", GoesBy::checkpoint},
                             {"seed", GoesBy::checkpoint},    {"element", GoesBy::pass},
                             {"rows", GoesBy::pass},          {"order of rows", GoesBy::pass},
                             {"batches", GoesBy::neither},    {"batch_size", GoesBy::program},
                             {"micro_batch", GoesBy::program}};

// ---------------------------------------------------------------- precision

std::string name_of(const Policy& policy) {
  if (policy == float32) return "float32";
  if (policy == mixed_float16) return "mixed_float16";
  if (policy == mixed_bfloat16) return "mixed_bfloat16";
  return text("compute ", policy.compute, ", variables ", policy.variable);
}

void collect_policies(const Layer& layer, std::set<const Layer*>& seen, std::vector<std::string>& names) {
  if (!seen.insert(&layer).second) return;
  if (const auto& policy = layer.policy()) {
    const std::string name = name_of(*policy);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  for (const auto& child : layer.children()) collect_policies(*child, seen, names);
}

std::string policy_of(const Layer& model) {
  std::set<const Layer*> seen;
  std::vector<std::string> names;
  collect_policies(model, seen, names);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " and ") + name;
  return all.empty() ? "float32" : all;
}

// ---------------------------------------------------------------- data

bool begins(std::string_view name, std::initializer_list<std::string_view> with) {
  return std::ranges::any_of(with, [&](std::string_view each) { return name.starts_with(each); });
}
/// True for stages that give as many elements as they read, in the same order.
bool keeps_order(const std::string& name) { return begins(name, {"map", "cache", "rows of rank"}); }

/// The stage that makes the batches of a pass, if later stages keep their order.
const Stage* batching_stage(const Stage& last) {
  for (const Stage* stage = &last;;) {
    if (stage->batch_size()) return stage;
    const std::vector<const Stage*> sources = stage->sources();
    if (sources.size() != 1 || !keeps_order(stage->name())) return nullptr;
    stage = sources[0];
  }
}

/// A hash of everything that chooses and orders rows, without the results of maps, and without the size of the batches
/// that `batches` makes. That of others, as of batches that are shuffled, decides about the order of rows.
std::uint64_t order_of(const Stage& stage, const Stage* batches) {
  std::uint64_t hash = 1;
  const std::vector<const Stage*> sources = stage.sources();
  if (&stage == batches && begins(stage.name(), {"batch(", "padded_batch("}))
    hash = mix(hash_of(std::string_view("batch")), stage.identity());
  else if (!sources.empty() && !keeps_order(stage.name()))
    hash = mix(hash_of(std::string_view(stage.name())), stage.identity());
  for (const Stage* source : sources) hash = mix(hash, order_of(*source, batches));
  return hash;
}

/// The spec of an element with its rows left open.
std::string element_facts_text(const std::vector<Spec>& specs) {
  TextStream out;
  for (Spec spec : specs) {
    if (spec.shape.rank() > 0) spec.shape.set(0, any_size);
    out << (out.str().empty() ? "" : ", ") << spec;
  }
  return out.str();
}

std::string text_or_unknown(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "unknown";
}

/// Cuts long lists of names.
std::string shown(const std::string& value) {
  constexpr std::size_t longest = 120;
  return value.size() <= longest ? value : value.substr(0, longest) + "...";
}

const FactDifference* find(const std::vector<FactDifference>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &FactDifference::name);
  return found == all.end() ? nullptr : &*found;
}

constexpr std::string_view another_directory =
    ", or begin a training of its own in another directory (load_safetensors takes weights alone)";

/// The policies that decide about a loss scale.
std::string loss_scale_text(const std::vector<FactDifference>& all, const FactDifference& loss_scale) {
  const FactDifference* const policy = find(all, "policy");
  return text("the program has ", loss_scale.program == "none" ? "no" : "a", " loss scale",
              policy ? text(" (policy ", policy->program, ")") : std::string(), ", the checkpoint has ",
              loss_scale.checkpoint == "none" ? "none" : "one",
              policy ? text(" (", policy->checkpoint, ")") : std::string(), "; go on with ",
              policy ? text("policy ", policy->checkpoint) : std::string("the policy of the checkpoint"));
}

/// The options that decide an optimizer's slots.
std::string slots_text(const std::vector<FactDifference>& all, const FactDifference& slots) {
  std::string reasons;
  for (const std::string_view name : {"momentum", "amsgrad", "centered", "use_ema"})
    if (const FactDifference* each = find(all, name))
      reasons += text(reasons.empty() ? "" : ", ", name, ' ', each->program, ", the checkpoint ", each->checkpoint);
  return text("the program has ", reasons.empty() ? "" : reasons + ": ", "slots ", slots.program, " instead of ",
              slots.checkpoint);
}

}  // namespace

GoesBy detail::rule_of(std::string_view name) {
  const auto row = std::ranges::find(rules, name, &RuleRow::name);
  return row == std::end(rules) ? GoesBy::program : row->by;
}

TrainingFacts detail::facts_of(const Module& model, const Optimizer& optimizer) {
  TrainingFacts facts = optimizer.said();
  const Layer& layer = model.layer_behind();
  facts.emplace_back("policy", policy_of(layer));
  facts.emplace_back("loss_scale", layer.loss_scale() ? "of the policy" : "none");
  return facts;
}

TrainingFacts detail::facts_of(const Pipeline& dataset) {
  const auto stage = dataset.with_start();
  const Stage* const batches = batching_stage(dataset.stage());
  const auto rows = dataset.rows();
  const auto cardinality = dataset.cardinality();
  TrainingFacts facts{{"element", element_facts_text(dataset.specs())}};
  // The rows that drop_remainder leaves out do not count, since they depend on the batch size.
  std::optional<std::int64_t> all = rows ? std::optional(rows->first) : cardinality;
  if (batches && !batches->sources().empty() && batches->sources()[0]->is_counted() && !batches->is_endless())
    all = batches->sources()[0]->length(0);
  facts.emplace_back("rows", text_or_unknown(all));
  facts.emplace_back("order of rows", text(std::hex, std::setw(16), std::setfill('0'), order_of(*stage, batches)));
  facts.emplace_back("batch_size", text_or_unknown(batches ? batches->batch_size() : std::nullopt));
  facts.emplace_back("batches", text_or_unknown(cardinality));
  return facts;
}

std::vector<FactDifference> detail::differences(const TrainingFacts& program, const TrainingFacts& checkpoint) {
  std::vector<FactDifference> all;
  for (const auto& [name, value] : program) {
    const auto then = std::ranges::find(checkpoint, name, &TrainingFacts::value_type::first);
    if (then == checkpoint.end() || then->second == value || rule_of(name) == GoesBy::neither) continue;
    all.push_back({name, value, then->second, rule_of(name)});
  }
  return all;
}

std::string detail::value_of(const TrainingFacts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &TrainingFacts::value_type::first);
  return found == facts.end() ? std::string() : found->second;
}

std::int64_t detail::number_of(const TrainingFacts& facts, std::string_view name, std::int64_t otherwise) {
  const std::string value = value_of(facts, name);
  std::int64_t number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() ? number : otherwise;
}

void detail::check_agreement(const std::vector<FactDifference>& all, const std::string& where,
                             const std::string& within) {
  for (const FactDifference& each : all) {
    if (each.by == GoesBy::both) {
      if (each.name == "slots")
        throw InvalidArgument(
            text(where, ": ", slots_text(all, each), "; go on with those of the checkpoint", another_directory));
      if (each.name == "loss_scale")
        throw InvalidArgument(text(where, ": ", loss_scale_text(all, each), another_directory));
      throw InvalidArgument(text(where, ": the program has ", each.name, ' ', each.program, ", the checkpoint ",
                                 each.checkpoint, "; go on with ", each.checkpoint, another_directory));
    }
    if (each.by != GoesBy::pass || within.empty()) continue;
    const FactDifference* const seed = find(all, "seed");
    const std::string values =
        each.name == "order of rows"
            ? text("another order of rows (shuffle, filter, take and their seeds",
                   seed ? text("; set_seed(", seed->program, ") instead of ", seed->checkpoint) : std::string(), ")")
            : text(each.name, ' ', shown(each.program), ", the checkpoint ", shown(each.checkpoint));
    throw InvalidArgument(text(where, ": the checkpoint is ", within, ", and the program has ", values,
                               ": rows of this pass would be read twice or left out; go on with the data that the "
                               "training began with, at least to the end of the pass",
                               another_directory));
  }
}

std::string text_of(const std::vector<FactDifference>& all) {
  std::string line;
  for (const FactDifference& each : all) {
    if (each.by == GoesBy::neither) continue;
    const bool of_program = each.by != GoesBy::checkpoint;
    line += line.empty() ? "" : "; ";
    if (each.name == "order of rows") line += "the order of rows from the program (the checkpoint had another)";
    else if (of_program)
      line += text(each.name, ' ', shown(each.program), " from the program (the checkpoint had ",
                   shown(each.checkpoint), ')');
    else
      line += text(each.name, ' ', shown(each.checkpoint), " from the checkpoint (the program has ",
                   shown(each.program), ')');
  }
  return line;
}

}  // namespace gradus
