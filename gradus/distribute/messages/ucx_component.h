/// The interface of libgradus_ucx.so: plain functions over one UCX worker, without exceptions, so that it fits every
/// build of the library. One thread at a time calls them, but for `wake`.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus {

struct UcxSettings {
  const char* transports;  // UCX_TLS, as "posix,self"; null: UCX's own choice
  const char* devices;     // UCX_NET_DEVICES, as "lo"; null: UCX's own choice
  int notices_lost_peers;  // costs half of the speed of large messages, and is needed to form again
  void* owner;             // first argument of the functions below
  void (*done)(void* transfer, const char* problem, std::size_t length);  // a message has come to its end
  void (*lost)(void* owner, int rank, const char* why);                   // for peers whose loss is noticed
};

struct UcxTable {
  static constexpr std::uint32_t current = 1;
  std::uint32_t version;
  /// A worker; null where it cannot be, and `why` says it.
  void* (*open)(const UcxSettings* settings, char* why, std::size_t why_size);
  /// The size of the address in bytes; `out` receives the first `size` of them.
  std::size_t (*address)(void* worker, void* out, std::size_t size);
  /// 0 if it failed.
  int (*connect)(void* worker, int rank, const void* address, std::size_t size, char* why, std::size_t why_size);
  /// `transfer` is given to `done`, perhaps before these return.
  void (*send)(void* worker, int rank, std::uint64_t tag, const void* bytes, std::size_t size, void* transfer);
  void (*receive)(void* worker, std::uint64_t tag, void* bytes, std::size_t size, void* transfer);
  int (*progress)(void* worker);
  /// Sleeps until an event, `wake`, or this many milliseconds have passed.
  void (*sleep)(void* worker, int milliseconds);
  void (*wake)(void* worker);
  /// Sockets that have been made since `open` are closed on exec.
  void (*seal)(void* worker);
  /// Sends messages on their way, for at most `milliseconds`, and ends the worker. Messages that are under way are done
  /// with a problem; their bytes are not touched any more.
  void (*close)(void* worker, int milliseconds);
};

}  // namespace gradus
