#include "gradus/data/fingerprint.h"
#include "gradus/base/hash.h"

namespace gradus {
namespace {

void collect(const Stage& stage, std::vector<StageFingerprint>& out) {
  for (const Stage* source : stage.sources()) collect(*source, out);
  std::uint64_t hash = stage.fingerprint();
  for (const Spec& spec : stage.specs()) hash = mix(hash, hash_of(spec));
  out.push_back({&stage, hash});
}

}  // namespace

std::vector<StageFingerprint> fingerprints_of(const Stage& last) {
  std::vector<StageFingerprint> all;
  collect(last, all);
  return all;
}

}  // namespace gradus
