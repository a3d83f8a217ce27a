/// Remote procedure calls: questions and answers between processes, bytes there, and bytes back, perhaps late. By gRPC,
/// which is a component of its own (component.h), or within one process. Questions are small, and come with the token
/// that all share.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/messages/transport.h"

struct ifaddrs;

namespace gradus {

/// Answers questions. Both functions are called from any thread, and return soon.
class RpcHandler {
 public:
  using Answer = std::function<void(std::string_view bytes)>;
  virtual ~RpcHandler() = default;
  /// `answer` is called once, now or later, from any thread. `call` is the number of the question.
  virtual void ask(std::uint64_t call, std::string_view bytes, Answer answer) = 0;
  /// The caller has gone, so the question needs no answer: its process may have ended.
  virtual void left(std::uint64_t call) = 0;
  /// A caller without the token was turned away.
  virtual void refused(std::string_view peer) = 0;
};

/// Answers that are given when no lock is held any more.
using Replies = std::vector<std::pair<RpcHandler::Answer, std::string>>;
inline void send(const Replies& replies) {
  for (const auto& [answer, bytes] : replies) answer(bytes);
}

/// Writes to standard error that `who` refuses a peer with another token, as RefusedQuestions decides.
void notice_turned_away(std::string_view who, std::string_view peer);

/// Reports on questions without the token: the first ones, then each time that their number has doubled, with the
/// number, since a stranger may ask thousands of times a second. From any thread.
class RefusedQuestions {
 public:
  static constexpr std::uint64_t always_told = 4;
  /// The line to report, for people; empty if there is none.
  std::string line(std::string_view who, std::string_view peer);

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;  // by the refusing server
};

/// A server's messages about failed TLS handshakes: each reason once, and a few of them, since a refused client tries
/// again. From any thread.
class FailedHandshakes {
 public:
  static constexpr std::size_t most_reasons = 4;
  explicit FailedHandshakes(std::string where) : where_(std::move(where)) {}
  /// For people; empty where nothing is to be said any more.
  std::string line(std::string_view why);

 private:
  const std::string where_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

class RpcServer {
 public:
  virtual ~RpcServer() = default;
  /// At which it listens.
  virtual int port() const = 0;
  /// No more questions; answers have so long to arrive. Nothing of the handler is called after it.
  virtual void stop(std::chrono::milliseconds patience) = 0;
};

/// The server has another token: asking again is of no use.
class TurnedAway : public Unavailable {
 public:
  using Unavailable::Unavailable;
};
/// The caller has cancelled its questions: RpcClient::cancel.
class LeftOff : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

class RpcClient {
 public:
  virtual ~RpcClient() = default;
  /// Waits for the answer. Nothing at the deadline. Unavailable names the server that has gone, TurnedAway the one that
  /// refuses; a server that has not come yet is waited for, too, if `awaits`.
  virtual std::optional<std::string> ask(std::string_view bytes, Deadline deadline, bool awaits) = 0;
  /// Why there is no connection to a server that it waits for, as last known; empty: connected, or unknown.
  virtual std::string problem() const { return {}; }
  /// From any thread: pending and later calls throw LeftOff.
  virtual void cancel() = 0;
};

inline constexpr int most_bytes_asked = 1 << 20, most_bytes_answered = 64 << 20;

/// Unavailable if `where` cannot be listened at, InvalidArgument if a file of `credentials` cannot be read. `where`
/// with another host than the loopback's listens on all interfaces, by IPv4 and IPv6, or on that of this name; with
/// port 0 at this host alone, at any free port. `problem` opens the message of a failure. At the loopback, without a
/// token and without certificates, it makes a token and leaves it for this user (left_token.h), where clients find it.
/// Few connections without the token are open at a time (listener.h).
std::unique_ptr<RpcServer> grpc_server(const Address& where, const std::string& interface,
                                       const Credentials& credentials, RpcHandler& handler,
                                       const std::string& problem = "rank 0 cannot hold the meeting");
/// The address of this machine at which those are served that reach `meeting`, too: of this interface, or of the one
/// that leads there where it is empty.
std::string own_host(const Address& meeting, const std::string& interface);
/// The name of the interface of this machine that has this address, as "lo" has 127.0.0.1; empty if none that is up
/// has it.
std::string interface_of(const std::string& host);
/// The same of a list, as getifaddrs gives it.
std::string interface_of(const std::string& host, const ifaddrs* among);
std::unique_ptr<RpcClient> grpc_client(const Address& where, const Credentials& credentials,
                                       const std::string& what = "the meeting");
/// A client of a handler in this process.
std::unique_ptr<RpcClient> in_process_client(RpcHandler& handler);

}  // namespace gradus
