/// Listener: a server's listening sockets, and the connections that have not proven yet that they are a rank's. There
/// are few of those at a time, and the oldest are dropped first, so that mere connections keep no rank out.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include "gradus/distribute/cluster.h"

namespace gradus {

class Listener {
 public:
  using Clock = std::chrono::steady_clock;
  /// The largest number of unproven connections in a process with this many descriptors.
  static std::size_t most_unproven(std::size_t descriptors);
  /// The least and the longest time that a connection has to prove itself.
  static constexpr std::chrono::milliseconds grace{200}, patience{30'000};

  struct Uses {
    std::function<void(int descriptor)> take;              // receives an accepted connection and closes it
    std::function<void(const std::string& problem)> tell;  // for people: descriptors have run out
  };

  /// Listens; connections wait until start(). Host "0.0.0.0" means all interfaces, by IPv4 and IPv6; port 0 means any
  /// free one. Unavailable gives the reason if listening is not possible.
  explicit Listener(const Address& where);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  void start(Uses uses);
  /// From any thread: marks the connection of this peer, in gRPC's notation ("ipv4:127.0.0.1:4711"), as proven.
  void prove(std::string_view peer);
  /// Stops; no connection is accepted afterwards.
  void stop();
  /// The number of unproven connections.
  std::size_t unproven();

 private:
  struct Unproven {
    int descriptor;  // a duplicate, to end the connection that was handed on
    Clock::time_point since;
  };
  using Waiting = std::map<std::string, Unproven>;  // by peer

  void run();
  void accept_from(int listening);
  /// True if there is room for one more connection; it may drop the oldest one.
  bool make_room();
  void add(int accepted);
  void on_exhaustion();
  void drop(Waiting::iterator connection);
  void drop_ended(const std::vector<std::string>& ended);
  Waiting::iterator oldest();
  int milliseconds_to_wait();

  std::vector<int> listening_;
  int port_ = 0, wake_ = -1;
  std::size_t most_;
  Uses uses_;
  std::mutex mutex_;
  Waiting waiting_;
  bool is_stopping_ = false;
  bool has_told_ = false;                // true once the lack of descriptors was reported
  Clock::time_point pauses_until_ = {};  // nothing is accepted before
  std::thread thread_;
};

/// Raises the limit of descriptors to the system's maximum, 65,536 at most, since many systems start programs with
/// 1024. Returns the limit.
std::size_t raise_descriptor_limit();

}  // namespace gradus
