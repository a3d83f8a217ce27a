/// ParameterClient: one parameter server, as one thread of a worker sees it. A server that does not answer is asked
/// again until the timeout, in which it may come back: every question may be asked twice. Unavailable names the server.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "gradus/distribute/messages/rpc.h"
#include "gradus/distribute/parameter_servers/parameter_questions.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/shape.h"

namespace gradus {

/// A server, and the settings that its clients share.
struct ParameterServerPlace {
  std::shared_ptr<RpcClient> client;
  std::string name;  // "parameter server 0 (127.0.0.1:2222)"
  std::string run;
  std::size_t lag = 0;
  std::chrono::milliseconds timeout{60'000}, heartbeat{10'000};
};

class ParameterClient {
 public:
  /// `sender` is of this thread alone, in all processes.
  ParameterClient(std::shared_ptr<const ParameterServerPlace> place, std::string sender);

  struct NewCell {
    std::uint64_t number;
    std::string name;
    Spec spec;
  };
  void begin();
  void add_cells(std::span<const NewCell> cells);
  /// `version`: the number of steps applied.
  void set(std::uint64_t cell, std::uint64_t version, std::string_view bytes);
  void add_program(std::uint64_t number, std::string_view bytes);
  /// `values`: contiguous.
  void push(std::uint64_t step, std::uint64_t program, std::string_view values);
  /// `size` bytes of the values that belong to `program`, once the first `version` steps are applied.
  std::string pull(std::uint64_t program, std::uint64_t version, std::size_t size);

 private:
  /// Nothing: the upload that this is a piece of has to begin again.
  std::optional<std::string> ask(const std::string& question, std::string_view doing);
  void send(ParameterQuestion kind, std::uint64_t subject, std::uint64_t program, std::string_view bytes,
            std::string_view doing);
  const std::shared_ptr<const ParameterServerPlace> place_;
  const std::string sender_;
  std::uint64_t sequence_ = 0;
};

}  // namespace gradus
