# Which compilers the headers are for; older ones would fail with pages of what they do not know.
set(gradus_oldest_GNU 12)
set(gradus_oldest_Clang 14)
foreach(kind GNU Clang)
  if(CMAKE_CXX_COMPILER_ID STREQUAL ${kind} AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS ${gradus_oldest_${kind}})
    message(FATAL_ERROR "gradus: C++20 as in g++ ${gradus_oldest_GNU} or clang++ ${gradus_oldest_Clang} is needed, or newer; "
                        "${CMAKE_CXX_COMPILER} is ${kind} ${CMAKE_CXX_COMPILER_VERSION}. Set CMAKE_CXX_COMPILER or CXX.")
  endif()
endforeach()
