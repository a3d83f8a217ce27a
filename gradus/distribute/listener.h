/// Listener: the sockets at which a server listens, and the connections that have not shown yet that they are a rank's.
/// Of these there are few at a time, and the oldest go first: so whoever only connects keeps no rank out.
#pragma once
#include <chrono>
#include <condition_variable>
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
  /// How many connections may be unproven at a time, of a process that may have so many descriptors.
  static std::size_t most_unproven(std::size_t descriptors);
  /// How long a connection has at least to prove itself, and at most.
  static constexpr std::chrono::milliseconds grace{200}, patience{30'000};

  struct Uses {
    std::function<void(int descriptor)> take;              // a connection was accepted: whoever takes it closes it
    std::function<void(const std::string& problem)> tell;  // for people: descriptors have run out
  };

  /// Listens; connections wait until start(). At host "0.0.0.0" on all interfaces, by IPv4 and IPv6; at port 0 on any
  /// that is free. Unavailable says why nobody can listen there.
  explicit Listener(const Address& where);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  void start(Uses uses);
  /// From any thread: the connection of this peer, as gRPC writes it ("ipv4:127.0.0.1:4711"), belongs here.
  void prove(std::string_view peer);
  /// Nothing is taken after it.
  void stop();
  /// How many connections are unproven now.
  std::size_t unproven();

 private:
  struct Unproven {
    int descriptor;  // a second one: to end the connection that was handed on
    Clock::time_point since;
  };
  using Waiting = std::map<std::string, Unproven>;  // by peer

  void run();
  void accept_from(int listening);
  /// Whether there is room now for one more, which the oldest one may have to make.
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
  bool has_told_ = false;                // that descriptors have run out
  Clock::time_point pauses_until_ = {};  // nothing is accepted before
  std::thread thread_;
};

/// As many descriptors as the system lets this process have, 65,536 at most: programs start with 1024 on many systems.
/// How many it may have now.
std::size_t raise_descriptor_limit();

}  // namespace gradus
