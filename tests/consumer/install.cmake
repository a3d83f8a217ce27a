# Installs the build tree BUILD into PREFIX, which holds nothing else afterwards.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${PREFIX}/include/gradus/backend/cpu)
  message(FATAL_ERROR "private headers were installed: ${PREFIX}/include/gradus/backend/cpu")
endif()
