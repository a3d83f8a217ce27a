/// Ops that are not written as StableHLO, and the reasons.
#include <array>
#include "gradus/backend/xla/lowering.h"

namespace gradus::xla {
namespace {

constexpr std::string_view shards = "it joins the shards of a batch, which a strategy brings together";
constexpr std::string_view decomposition =
    "its iterations follow the data: the function of this name brings tensors to the processor";
constexpr std::array refused{
    Refusal{"of_shard", shards},    Refusal{"on_shard", shards},         Refusal{"all_reduce", shards},
    Refusal{"join_in", shards},     Refusal{"all_gather", shards},       Refusal{"join_gather", shards},
    Refusal{"from_shard", shards},  Refusal{"join_from", shards},        Refusal{"qr", decomposition},
    Refusal{"lu", decomposition},   Refusal{"eigh", decomposition},      Refusal{"svd", decomposition},
    Refusal{"pinv", decomposition}, Refusal{"matrix_exp", decomposition}};

}  // namespace

std::span<const Refusal> refusals() { return refused; }

}  // namespace gradus::xla
