/// The secret of a server that only this machine reaches, if the user gave none. The server makes it and leaves it in a
/// file for its user, and clients of that user read it there, so other users of the machine are strangers.
///
/// The file is named by port and network namespace, has mode 600, and is in a folder of mode 700 that belongs to the
/// user: /run/user/UID/gradus, else /tmp/gradus-UID, else /dev/shm/gradus-UID. The server holds a lock on it as long as
/// it lives: a file that is not locked was left by a process that was killed.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "gradus/distribute/messages/rpc.h"

namespace gradus {

/// True if a server at this place has no other protection from strangers.
bool needs_left_token(const Address& where, const Credentials& credentials);

/// A random token. Unavailable if the system gives no random numbers.
std::string new_token();
/// The same token for every server of this process at a port other than 0, so that clients also reach the next server
/// there.
std::string token_of_process(int port);

/// A token that stays in its file as long as this object lives.
class LeftToken {
 public:
  /// Replaces an older file. Unavailable names the places that were tried, and how to do without them.
  LeftToken(const Address& where, const std::string& token);
  ~LeftToken();
  LeftToken(const LeftToken&) = delete;

 private:
  std::string name_;
  std::filesystem::path folder_;
  int file_ = -1;
};

/// The result of a search in those places.
struct FoundToken {
  std::string token = {};    // empty: none
  std::string problem = {};  // for people: a file or folder that was rejected, and the reason
};
FoundToken find_token(const Address& where);
/// The folders where this user's tokens may lie.
std::vector<std::filesystem::path> token_folders();

/// A client that looks for the server's token, and waits for it as for the server itself. `connect` makes a client from
/// a token.
std::unique_ptr<RpcClient> client_with_left_token(
    const Address& where, const std::string& what,
    std::function<std::unique_ptr<RpcClient>(const std::string& token)> connect);

}  // namespace gradus
