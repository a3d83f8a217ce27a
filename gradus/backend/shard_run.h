/// ShardRun: the shards of a batch, while a program runs on them. A strategy makes one for each call.
#pragma once
#include <span>
#include <string>
#include <unordered_map>
#include <vector>
#include "gradus/base/ref.h"
#include "gradus/graph/call_context.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/cuts.h"
#include "gradus/tensor/shape.h"

namespace gradus {

class ShardRun {
 public:
  /// A shard that this process computes.
  struct Shard {
    int number = 0;                           // among all of the batch
    int length = 0;                           // the index of its length, 0 or 1
    int replica = 0;                          // among this process's
    std::vector<Ref<Buffer>> arguments = {};  // by OfShard::argument; those of the other length are empty
  };
  /// A summand of a shard.
  struct Part {
    int shard;
    Ref<Buffer> value;
  };

  /// A sum over all shards of the batch, by the tree over their numbers.
  struct Sum {
    Spec spec;
    std::vector<Part> parts;  // those of this process, by number, in memory of the host
    Ref<Buffer> result = {};
    Cuts cuts = {};       // if each rank gets a part of it: where; else empty
    bool narrow = false;  // as of AllReduce
  };

  /// A value that is divided among ranks, to be whole on every rank.
  struct Gathered {
    DType dtype;
    Cuts cuts;
    Ref<Buffer> part;  // this rank's, in memory of the host
    Ref<Buffer> result = {};
  };

  virtual ~ShardRun() = default;

  /// A value that a program is bound to and all processes share, such as a Variable.
  struct Common {
    std::string name;  // for messages
    std::uint64_t hash;
  };
  /// A program is bound to these for the first time: throws unless all processes have the same.
  virtual void check_same(std::span<const Common>) {}
  /// A program with this fingerprint runs for the first time: throws unless that is so in all processes.
  virtual void check_same(std::uint64_t) {}
  /// Makes the results. All processes ask for the same sums in the same order.
  virtual void add_up(std::span<Sum> sums) = 0;
  /// Makes the results; as for sums.
  virtual void gather(std::span<Gathered> values) = 0;
  /// The program has all its sums, and nothing has been assigned: throws unless all processes have come so far.
  virtual void has_added() {}

  /// True if sums may begin before all parts of all of them are ready. Then, before add_up:
  virtual bool begins_early() const { return false; }
  /// These sums will be asked for, in this order; their parts are not there yet.
  virtual void expect(std::span<Sum>) {}
  /// Sum `i` of those has its parts.
  virtual void is_there(std::size_t) {}
  /// Moves all that can be moved without waiting.
  virtual void drive() {}

  /// The run of the program that this thread runs now; null: none.
  static ShardRun* current() { return CallContext::here().shards; }

  /// The rank that computes a shard, and the index of its length.
  struct Whereabouts {
    int number, rank, length;
  };
  std::vector<Shard> shards;            // by number
  std::vector<Whereabouts> all_shards;  // that have rows, those of other processes included
  std::vector<Device> replicas;         // where those of this process compute
  int rank = 0, ranks = 1;              // of processes that run together
  bool may_add_on_devices = false;      // sums are over this process's shards, in any order
  bool divides_state = false;           // each rank keeps a part of the state of optimizers (divided_state.h)
  /// Results that differ from shard to shard: those of all shards of this process, by number, under that of the first.
  std::unordered_map<const Buffer*, std::vector<Part>> results;
};

}  // namespace gradus
